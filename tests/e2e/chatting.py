"""A chat model that costs nothing: a function answers, and what it was asked is kept."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr


class ScriptedChat(BaseChatModel):
    """Answers by a function of the prompt; what that raises, the model raises."""

    answer: Callable[[str], str]
    _prompts: list[str] = PrivateAttr(default_factory=list[str])
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)
    _running: int = PrivateAttr(default=0)
    _most: int = PrivateAttr(default=0)

    @property
    def prompts(self) -> list[str]:
        """What it was asked."""
        return self._prompts

    @property
    def most_at_once(self) -> int:
        """How many questions it was asked at the same time."""
        return self._most

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        prompt = messages[-1].text
        with self._lock:
            self._prompts.append(prompt)
            self._running += 1
            self._most = max(self._most, self._running)
        try:
            reply = self.answer(prompt)
        finally:
            with self._lock:
                self._running -= 1
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=reply))])
