"""Writes of asynchronous callers that share a transaction."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from graphmem.errors import BackendUnavailable, StoreFull
from graphmem.models import Episode, Scope
from graphmem.protocols import GraphBackend

T = TypeVar("T")
R = TypeVar("R")

Stored = tuple[str, bool]
"""Id of an episode, and whether it was created."""

Submit = Callable[[Callable[[], None]], object]
"""Schedules a call on a thread."""

_BATCH = 100  # values per transaction


@dataclass(slots=True, eq=False)
class _Waiting(Generic[T, R]):
    read: Callable[[], T]
    result: Future[R] = field(default_factory=Future[R])


class BatchWriter(Generic[T, R]):
    """Writer that stores all waiting values of a group in one transaction, in the order of the calls.

    A commit waits for the disk, whatever its size; with a transaction per value, each would wait for the commits of all
    values before it. A value is on disk when `store` returns.

    Parameters
    ----------
    submit
        Schedules a call on a thread.
    write
        Stores values in one transaction; returns the result of each. If one of them may be the cause of its error, it
        is called again with parts of them.
    on_stored
        Called with stored values.
    """

    def __init__(
        self, submit: Submit, write: Callable[[Sequence[T]], Sequence[R]], on_stored: Callable[[Sequence[T]], None]
    ) -> None:
        self._submit = submit
        self._write = write
        self._on_stored = on_stored
        self._waiting: dict[Scope | None, list[_Waiting[T, R]]] = {}
        """Waiting values of each group that has a call on a thread."""
        self._lock = threading.Lock()

    async def store(self, read: Callable[[], T], group: Scope | None = None) -> R:
        """Store the value that `read` returns on the thread; cancelling the caller before that prevents it.

        Raises
        ------
        Exception
            The error of `read` or of the store for this value.
        """
        waiting = _Waiting[T, R](partial(contextvars.copy_context().run, read))
        with self._lock:
            if group not in self._waiting:
                self._submit(partial(self._store_waiting, group))
            self._waiting.setdefault(group, []).append(waiting)
        return await asyncio.wrap_future(waiting.result)

    def _store_waiting(self, group: Scope | None) -> None:
        """Store a batch of a group; if more values wait, the next batch is scheduled after the other groups."""
        if waiting := self._next(group):
            if batch := [(each, value) for each in waiting for value in _read(each)]:
                self._store(batch)
            again = partial(self._store_waiting, group)
            try:
                self._submit(again)
            except RuntimeError:  # no call can be scheduled while the interpreter shuts down
                again()

    def _next(self, group: Scope | None) -> list[_Waiting[T, R]]:
        with self._lock:
            waiting = self._waiting.pop(group)
            if waiting:
                self._waiting[group] = waiting[_BATCH:]
            return waiting[:_BATCH]

    def _store(self, batch: Sequence[tuple[_Waiting[T, R], T]]) -> None:
        values, results = [value for _, value in batch], None
        try:
            results = self._write(values)
            self._on_stored(values)
        except BaseException as error:  # noqa: BLE001 - it belongs to the callers
            if results is None and len(batch) > 1 and _may_be_of_one(error):
                half = len(batch) // 2
                self._store(batch[:half])
                self._store(batch[half:])
            else:
                for each, _ in batch:
                    each.result.set_exception(error)
        else:
            for (each, _), result in zip(batch, results, strict=True):
                each.result.set_result(result)


def _read(waiting: _Waiting[T, R]) -> Sequence[T]:
    """Return the value of a caller; nothing if the caller was cancelled or the value is invalid."""
    if waiting.result.set_running_or_notify_cancel():
        try:
            return [waiting.read()]
        except BaseException as error:  # noqa: BLE001 - it belongs to the caller
            waiting.result.set_exception(error)
    return []


def _may_be_of_one(error: BaseException) -> bool:
    """Return whether the other values of a batch may be stored without the one that caused an error."""
    return isinstance(error, StoreFull) or (isinstance(error, Exception) and not isinstance(error, BackendUnavailable))


class TurnWriter:
    """`BatchWriter` of episodes.

    Episodes of all scopes share a transaction if the store has one writer anyway; otherwise each scope has its own, so
    that none waits for the lock of another scope.

    Parameters
    ----------
    backend
        The store.
    submit
        Schedules a call on a thread.
    on_stored
        Called with the scopes of stored episodes.
    """

    def __init__(self, backend: GraphBackend, submit: Submit, on_stored: Callable[[Sequence[Scope]], None]) -> None:
        self._backend = backend
        self._writer = BatchWriter[Episode, Stored](
            submit,
            lambda episodes: backend.atomic(partial(self._add, episodes)),
            lambda episodes: on_stored(list(dict.fromkeys(episode.scope for episode in episodes))),
        )

    async def store(self, scope: Scope, read: Callable[[], Episode]) -> Stored:
        """Store the episode that `read` returns on the thread; see `BatchWriter.store`."""
        return await self._writer.store(read, None if self._backend.has_one_writer else scope)

    def _add(self, episodes: Sequence[Episode]) -> list[Stored]:
        scopes: dict[Scope, list[Episode]] = {}
        for episode in episodes:
            scopes.setdefault(episode.scope, []).append(episode)
        found: dict[str, Stored] = {}
        for scope, group in scopes.items():
            found.update(zip((e.id for e in group), self._backend.add_episodes(scope, group), strict=True))
        return [found[episode.id] for episode in episodes]
