"""A scripted chat model, and a tool for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from pydantic import Field


class Scripted(BaseChatModel):
    """A chat model that gives fixed answers, or raises them, and records what it was asked."""

    answers: list[Any] = Field(default_factory=list[Any])
    asked: list[list[BaseMessage]] = Field(default_factory=list[list[BaseMessage]])

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.asked.append(messages)
        answer = self.answers.pop(0) if self.answers else f"Answer {len(self.asked)}."
        if isinstance(answer, Exception):
            raise answer
        message = answer if isinstance(answer, AIMessage) else AIMessage(answer)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Scripted:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def system(self, call: int = -1) -> str:
        """Return the system prompt of a call."""
        return "\n".join(str(m.text) for m in self.asked[call] if isinstance(m, SystemMessage))


@tool
def weather(city: str) -> str:
    """Return the weather."""
    return f"20 degrees in {city}"
