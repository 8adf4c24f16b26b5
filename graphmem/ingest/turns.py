"""Storing turns of asynchronous callers: those that arrive during a transaction share the next one."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial

from graphmem.errors import BackendUnavailable, StoreFull
from graphmem.models import Episode, Scope
from graphmem.protocols import GraphBackend

Stored = tuple[str, bool]
"""Id of an episode, and whether it was created."""

_BATCH = 100  # turns per transaction


@dataclass(slots=True, eq=False)
class _Turn:
    scope: Scope
    read: Callable[[], Episode]
    stored: Future[Stored] = field(default_factory=Future[Stored])


class TurnWriter:
    """Writer that stores all waiting turns in one transaction, on threads of the memory.

    A commit waits for the disk, whatever its size; with a transaction per turn, each would wait for the commits of all
    turns before it. A turn is on disk when it is acknowledged. Turns of all scopes share a transaction if the store has
    one writer anyway; otherwise each scope has its own, so that no turn waits for the lock of another scope. Turns of a
    scope are stored in the order of the calls.

    Parameters
    ----------
    backend
        The store.
    submit
        Schedules a call on a thread.
    on_stored
        Called with the scopes of stored turns.
    """

    def __init__(
        self,
        backend: GraphBackend,
        submit: Callable[[Callable[[], None]], object],
        on_stored: Callable[[Sequence[Scope]], None],
    ) -> None:
        self._backend = backend
        self._submit = submit
        self._on_stored = on_stored
        self._waiting: dict[Scope | None, list[_Turn]] = {}
        """Waiting turns of each group that has a call on a thread; None is the group of all scopes."""
        self._lock = threading.Lock()

    async def store(self, scope: Scope, read: Callable[[], Episode]) -> Stored:
        """Store the episode that `read` returns on the thread; cancelling the caller before that prevents it.

        Raises
        ------
        Exception
            The error of `read` or of the store for this episode.
        """
        turn = _Turn(scope, partial(contextvars.copy_context().run, read))
        group = None if self._backend.has_one_writer else scope
        with self._lock:
            if group not in self._waiting:
                self._submit(partial(self._store_waiting, group))
            self._waiting.setdefault(group, []).append(turn)
        return await asyncio.wrap_future(turn.stored)

    def _store_waiting(self, group: Scope | None) -> None:
        """Store a batch of a group; its further turns take their place behind the calls of other groups."""
        if turns := self._next(group):
            if episodes := [read for turn in turns if (read := _read(turn)) is not None]:
                self._write(episodes)
            again = partial(self._store_waiting, group)
            try:
                self._submit(again)
            except RuntimeError:  # no call can be scheduled while the interpreter shuts down
                again()

    def _next(self, group: Scope | None) -> list[_Turn]:
        with self._lock:
            waiting = self._waiting.pop(group)
            if waiting:
                self._waiting[group] = waiting[_BATCH:]
            return waiting[:_BATCH]

    def _write(self, turns: Sequence[tuple[_Turn, Episode]]) -> None:
        stored: dict[str, Stored] | None = None
        try:
            stored = self._backend.atomic(partial(self._add, turns))
            self._on_stored(list(dict.fromkeys(turn.scope for turn, _ in turns)))
        except BaseException as error:  # noqa: BLE001 - it belongs to the callers
            if stored is None and len(turns) > 1 and _may_be_of_one_turn(error):
                for one in turns:
                    self._write([one])
            else:
                for turn, _ in turns:
                    turn.stored.set_exception(error)
        else:
            for turn, episode in turns:
                turn.stored.set_result(stored[episode.id])

    def _add(self, turns: Sequence[tuple[_Turn, Episode]]) -> dict[str, Stored]:
        scopes: dict[Scope, list[Episode]] = {}
        for turn, episode in turns:
            scopes.setdefault(turn.scope, []).append(episode)
        found: dict[str, Stored] = {}
        for scope, episodes in scopes.items():
            stored = self._backend.add_episodes(scope, episodes)
            found.update(zip((episode.id for episode in episodes), stored, strict=True))
        return found


def _read(turn: _Turn) -> tuple[_Turn, Episode] | None:
    """Return a turn with its episode; None if its caller was cancelled or the turn is invalid."""
    if not turn.stored.set_running_or_notify_cancel():
        return None
    try:
        return turn, turn.read()
    except BaseException as error:  # noqa: BLE001 - it belongs to the caller
        turn.stored.set_exception(error)
        return None


def _may_be_of_one_turn(error: BaseException) -> bool:
    """Return whether the other turns of a batch may be stored without the one that caused an error."""
    return isinstance(error, StoreFull) or (isinstance(error, Exception) and not isinstance(error, BackendUnavailable))
