"""A chat model that is asked in plain text: what judges and summaries need of one."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from graphmem.errors import ExtractionFailed, MissingExtra
from graphmem.llm.calls import TimedCalls
from graphmem.llm.errors import reason_for, secrets_of

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


class NoReply(ExtractionFailed):
    """The model gave no answer: it couldn't be reached or made, raised, or took too long."""


class Chat:
    """Asks a LangChain chat model, several questions at once, each with a time limit.

    Parameters
    ----------
    model
        The model, or ``provider:model``; one given by name is made at the first use.
    what
        What it is asked for, for an error.
    timeout
        Seconds that one answer may take.
    concurrency
        Questions at once.

    Raises
    ------
    MissingExtra
        If LangChain isn't installed.
    """

    def __init__(self, model: BaseChatModel | str, what: str, *, timeout: float, concurrency: int = 1) -> None:
        if isinstance(model, str) and find_spec("langchain") is None:
            raise MissingExtra(what, "langchain")
        self._model = model
        self._timeout = timeout
        self._calls = TimedCalls[str](concurrency, timeout)
        self._lock = threading.Lock()

    def ask(self, prompts: Sequence[str]) -> list[str | NoReply]:
        """Return the reply to each prompt, or why there is none: told without a secret, and without what led to it."""
        try:
            model = self._chat_model()
        except Exception as error:  # noqa: BLE001  (a provider's constructor raises what it likes)
            return [NoReply(f"the model can't be made: {reason_for(error)}") for _ in prompts]
        replies = self._calls.run([partial(_reply, model, prompt) for prompt in prompts])
        secrets = secrets_of(model)
        return [r if isinstance(r, str) else NoReply(reason_for(r, secrets)) for r in replies]

    def _chat_model(self) -> BaseChatModel:
        with self._lock:
            if isinstance(self._model, str):
                from langchain.chat_models import init_chat_model

                # the client's own limit ends the calls that we stop waiting for
                self._model = init_chat_model(self._model, timeout=self._timeout)
            return self._model


def _reply(model: BaseChatModel, prompt: str) -> str:
    return str(model.invoke(prompt).text)


def as_data(text: str) -> str:
    """Return text on one line that can't open or close a block of a prompt."""
    return re.sub(r"[<>]|\s+", " ", text)
