"""Parallel language model calls with hard time limits, and a plain-text chat client."""

from __future__ import annotations

import contextvars
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from graphmem.errors import ExtractionFailed, MissingExtra
from graphmem.llm.providers import reason_for, secrets_of
from graphmem.llm.structured import (
    LazyModel,
    ReplyCutOff,
    StructuredModel,
    invoke,
    last_object,
    on_timeout,
    without_thoughts,
)
from graphmem.text.normalize import inert

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage


T = TypeVar("T")

_ABANDONED_PER_SLOT = 4


class TooManyHanging(TimeoutError):
    """Raised for a new call when too many timed-out calls are still running."""


@dataclass(frozen=True, slots=True)
class _Running(Generic[T]):
    position: int
    future: Future[T]
    deadline: float
    on_timeout: list[Callable[[], None]]


class TimedCalls(Generic[T]):
    """Runner of at most `concurrency` calls at once over all threads, each with a limit of `timeout` seconds.

    Python can't stop a thread: a call past its limit keeps running in a daemon thread, which doesn't block the exit of
    the program, and its slot is released. While four times `concurrency` such calls are still running, new ones fail at
    once.
    """

    def __init__(self, concurrency: int, timeout: float) -> None:
        self._slots = threading.BoundedSemaphore(concurrency)
        self._timeout = timeout
        self._max_abandoned = _ABANDONED_PER_SLOT * concurrency
        self._abandoned: set[Future[T]] = set()
        self._lock = threading.Lock()

    def run(self, calls: Sequence[Callable[[], T]]) -> list[T | Exception]:
        """Run the calls; return the result or exception of each in order (TimeoutError past the limit)."""
        results: dict[int, T | Exception] = {}
        waiting = list(enumerate(calls))[::-1]
        running: list[_Running[T]] = []
        while waiting or running:
            # block for a slot only while none of these calls is running
            while waiting and self._slots.acquire(blocking=not running):
                position, call = waiting.pop()
                if self._hanging() >= self._max_abandoned:
                    self._slots.release()
                    results[position] = TooManyHanging(f"{self._max_abandoned} earlier calls still hang")
                else:
                    actions: list[Callable[[], None]] = []
                    try:
                        future = _start(call, actions)
                    except RuntimeError as error:  # no more threads can be started
                        self._slots.release()
                        results[position] = error
                    else:
                        running.append(_Running(position, future, time.monotonic() + self._timeout, actions))
            running = self._settle(running, results)
        return [results[position] for position in range(len(calls))]

    def _settle(self, running: list[_Running[T]], results: dict[int, T | Exception]) -> list[_Running[T]]:
        if not running:
            return running
        first = min(call.deadline for call in running)
        wait([c.future for c in running], max(0.0, first - time.monotonic()), return_when=FIRST_COMPLETED)
        now = time.monotonic()
        left: list[_Running[T]] = []
        for call in running:
            if call.future.done():
                results[call.position] = _outcome(call.future)
            elif call.deadline <= now:
                results[call.position] = TimeoutError(f"no reply within {self._timeout:g} s")
                with self._lock:
                    self._abandoned.add(call.future)
                for action in tuple(call.on_timeout):
                    action()
            else:
                left.append(call)
                continue
            self._slots.release()
        return left

    def _hanging(self) -> int:
        with self._lock:
            self._abandoned = {future for future in self._abandoned if not future.done()}
            return len(self._abandoned)


def _start(call: Callable[[], T], actions: list[Callable[[], None]]) -> Future[T]:
    future: Future[T] = Future()
    context = contextvars.copy_context()  # keeps the tracing context of the caller
    context.run(on_timeout.set, actions)

    def work() -> None:
        try:
            future.set_result(context.run(call))
        except BaseException as error:  # noqa: BLE001  (passed to the future)
            future.set_exception(error)

    threading.Thread(target=work, name="graphmem-llm", daemon=True).start()
    return future


def _outcome(future: Future[T]) -> T | Exception:
    error = future.exception()
    if error is None:
        return future.result()
    return error if isinstance(error, Exception) else RuntimeError(type(error).__name__)


class NoReply(ExtractionFailed):
    """Raised when a model gives no reply: it can't be created or reached, raises, or times out."""


class Chat(LazyModel):
    """Client of a LangChain chat model: parallel prompts, each with a time limit.

    Parameters
    ----------
    model, timeout
        See `LazyModel`.
    what
        Purpose of the model, for the error message.
    concurrency
        Maximum number of parallel prompts.

    Raises
    ------
    MissingExtra
        If LangChain isn't installed.
    """

    def __init__(self, model: BaseChatModel | str, what: str, *, timeout: float | None, concurrency: int = 1) -> None:
        if isinstance(model, str) and find_spec("langchain") is None:
            raise MissingExtra(what, "langchain")
        super().__init__(model, timeout)
        self._calls = TimedCalls[str](concurrency, self.timeout)

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
        self._calls = TimedCalls[list[Mapping[str, Any]]](1, self._model.timeout)

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
