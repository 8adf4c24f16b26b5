"""Plain-text clients of chat models: parallel prompts with time limits, and a question with a list as answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from graphmem.errors import ExtractionFailed, MissingExtra
from graphmem.llm.providers import reason_for, secrets_of
from graphmem.llm.structured import (
    LazyModel,
    ReplyCutOff,
    StructuredModel,
    invoke,
    last_object,
    without_thoughts,
)
from graphmem.text.normalize import inert
from graphmem.timed_calls import TimedCalls

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage


class NoReply(ExtractionFailed):
    """Raised when a model gives no reply: it can't be created or reached, raises, or times out."""


class Chat(LazyModel):
    """Client of a LangChain chat model: parallel prompts, each with a time limit.

    Parameters
    ----------
    model, timeout
        See `LazyModel`.
    concurrency
        Maximum number of parallel prompts.

    Raises
    ------
    MissingExtra
        If LangChain isn't installed.
    """

    def __init__(self, model: BaseChatModel | str, *, timeout: float | None, concurrency: int = 1) -> None:
        if isinstance(model, str) and find_spec("langchain") is None:
            raise MissingExtra(f"the language model {model}", "langchain")
        super().__init__(model, timeout)
        self._calls = TimedCalls[str]("graphmem-llm", concurrency, self.timeout)

    def ask(self, prompts: Sequence[str]) -> list[str | NoReply]:
        """Return the reply to each prompt, or a `NoReply` without secrets and without a cause attached."""
        try:
            model = self.model()
        except Exception as error:  # noqa: BLE001  (constructors of providers raise any exception)
            return [NoReply(f"the model can't be created: {reason_for(error)}") for _ in prompts]
        replies = self._calls.run([partial(_reply, model, prompt) for prompt in prompts])
        secrets = secrets_of(model)
        return [r if isinstance(r, str) else NoReply(reason_for(r, secrets)) for r in replies]


class ListQuestion:
    """A question to a chat model about numbered lines, which it answers with a list of objects.

    Parameters
    ----------
    model, schema, timeout
        See `StructuredModel`.
    rules
        The system prompt.
    key
        Name of the list in the reply.
    """

    def __init__(
        self, model: BaseChatModel | str, schema: Mapping[str, Any], rules: str, key: str, timeout: float | None
    ) -> None:
        self._model = StructuredModel(model, schema, timeout)
        self._rules, self._key = rules, key
        self._calls = TimedCalls[list[Mapping[str, Any]]]("graphmem-llm", 1, self._model.timeout)

    def ask(self, blocks: Mapping[str, Sequence[str]]) -> list[Mapping[str, Any]]:
        """Return the objects of the reply to blocks of lines, by name; raise `ExtractionFailed` without a list."""
        data = "\n".join(_block(name, lines) for name, lines in blocks.items())
        [found] = self._calls.run([partial(self._items, data)])
        if isinstance(found, ExtractionFailed):
            raise found
        if isinstance(found, Exception):
            raise ExtractionFailed(self._model.reason_for(found))
        return found

    def _items(self, data: str) -> list[Mapping[str, Any]]:
        try:
            reply = self._model.ask(self._rules, data)
        except ReplyCutOff as cut_off:
            reply = cut_off.reply
        answer = last_object(reply, self._key) if isinstance(reply, str) else reply
        items: Any = None if answer is None else answer.get(self._key)
        if not isinstance(items, list):
            raise ExtractionFailed(f"the model's reply has no list of {self._key}")
        return [cast("Mapping[str, Any]", item) for item in cast("list[object]", items) if isinstance(item, Mapping)]


def _block(name: str, lines: Sequence[str]) -> str:
    numbered = (f"{number}. {as_data(line)}" for number, line in enumerate(lines, 1))
    return "\n".join((f"<{name}>", *numbered, f"</{name}>"))


def _reply(model: BaseChatModel, prompt: str) -> str:
    reply = cast("BaseMessage", invoke(model, partial(model.invoke, prompt)))
    return without_thoughts(str(reply.text))


def as_data(text: str) -> str:
    """Return a text on one line and with inert angle brackets, so that it can't open or close a block of a prompt."""
    return inert(re.sub(r"\s+", " ", text))
