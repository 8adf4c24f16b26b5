"""Calls of language models: in parallel, each with a hard time limit; a chat model that is asked in plain text."""

from __future__ import annotations

import contextvars
import re
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Generic, TypeVar

from graphmem.errors import ExtractionFailed, MissingExtra
from graphmem.llm.errors import reason_for, secrets_of

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


T = TypeVar("T")

_ABANDONED_PER_SLOT = 4


class TooManyHanging(TimeoutError):
    """So many calls past their limit haven't returned that no more are begun."""


@dataclass(frozen=True, slots=True)
class _Running(Generic[T]):
    position: int
    future: Future[T]
    deadline: float


class TimedCalls(Generic[T]):
    """At most `concurrency` calls at once, over all threads that use it, none waited for longer than `timeout` seconds.

    Python can't stop a thread: a call past its limit is left behind in a daemon thread (so that it doesn't
    hold up the end of the program) and its slot is free again. When four times `concurrency` such calls still
    hang, new ones fail at once instead of adding more.
    """

    def __init__(self, concurrency: int, timeout: float) -> None:
        self._slots = threading.BoundedSemaphore(concurrency)
        self._timeout = timeout
        self._max_abandoned = _ABANDONED_PER_SLOT * concurrency
        self._abandoned: set[Future[T]] = set()
        self._lock = threading.Lock()

    def run(self, calls: Sequence[Callable[[], T]]) -> list[T | Exception]:
        """Make the calls and return, in their order, what each returned or raised (TimeoutError past the limit)."""
        results: dict[int, T | Exception] = {}
        waiting = list(enumerate(calls))[::-1]
        running: list[_Running[T]] = []
        while waiting or running:
            # with calls of our own to wait for, a slot that others hold isn't waited for
            while waiting and self._slots.acquire(blocking=not running):
                position, call = waiting.pop()
                if self._hanging() >= self._max_abandoned:
                    self._slots.release()
                    results[position] = TooManyHanging(f"{self._max_abandoned} earlier calls still hang")
                else:
                    running.append(_Running(position, _start(call), time.monotonic() + self._timeout))
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
            else:
                left.append(call)
                continue
            self._slots.release()
        return left

    def _hanging(self) -> int:
        with self._lock:
            self._abandoned = {future for future in self._abandoned if not future.done()}
            return len(self._abandoned)


def _start(call: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()
    context = contextvars.copy_context()  # tracing follows the caller

    def work() -> None:
        try:
            future.set_result(context.run(call))
        except BaseException as error:  # noqa: BLE001  (whatever a model raises belongs to its future)
            future.set_exception(error)

    threading.Thread(target=work, name="graphmem-llm", daemon=True).start()
    return future


def _outcome(future: Future[T]) -> T | Exception:
    error = future.exception()
    if error is None:
        return future.result()
    return error if isinstance(error, Exception) else RuntimeError(type(error).__name__)


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
