"""Worker: a process that extracts, indexes and maintains what other processes store."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Literal

from graphmem.background import PAUSE_IF_DENIED
from graphmem.engine import Engine
from graphmem.errors import BackendUnavailable, InvalidInput, StoreAccessDenied
from graphmem.models import EpisodeQuery, Model, Scope, UTCDateTime, utc_now

_log = logging.getLogger(__name__)

_UPKEEP_SECONDS = 60.0  # between two checks of whether upkeep is due


_State = Literal["working", "idle", "paused", "store unavailable", "stopped"]


class WorkerState(Model):
    """State of a worker.

    Attributes
    ----------
    state
        working: episodes wait. idle: none do. paused: extraction waits for a model or a repair, see `reason`. store
        unavailable: the store doesn't answer, and the worker tries again. stopped: it has ended.
    reason
        Why extraction is paused, or the error of the store.
    errors
        Errors of background work whose last run failed.
    at
        Time of this state.
    """

    state: _State
    reason: str | None = None
    errors: tuple[str, ...] = ()
    at: UTCDateTime


class Worker:
    """A polling loop that starts an engine's background work on data that other processes store.

    Any number of workers can run on one store: claims keep an episode from being extracted twice, and what a killed
    worker had claimed is released by another on the same machine, or after the setting `claim_seconds`.

    Parameters
    ----------
    engine
        Engine with background work.
    scopes
        Scopes to serve in place of those of the setting `background_scopes`; without both, all scopes of the store,
        also new ones.
    seconds
        Polling interval.

    Raises
    ------
    InvalidInput
        If the engine has no background work.
    """

    def __init__(self, engine: Engine, scopes: Sequence[Scope] | None = None, *, seconds: float = 1.0) -> None:
        if not engine.has_background:
            raise InvalidInput("worker: the memory has no background work; open it with background=True")
        self._engine = engine
        if scopes is not None:
            self._engine.served = scopes
        self._seconds = seconds
        self._checked_at = float("-inf")

    def run(self, stopping: threading.Event, on_state: Callable[[WorkerState], None]) -> None:
        """Work until `stopping` is set; report the state after each poll of the store, and at the end."""
        told = ""
        while not stopping.is_set():
            try:
                state = self._poll()
                pause, told = self._seconds, ""
            except BackendUnavailable as error:
                if told != str(error):  # a server may be away for hours
                    _log.warning("worker: %s", error)
                told = str(error)
                state = self._state("store unavailable", str(error))
                pause = PAUSE_IF_DENIED if isinstance(error, StoreAccessDenied) else self._seconds
            on_state(state)
            stopping.wait(pause)
        on_state(self._state("stopped"))

    def _poll(self) -> WorkerState:
        engine = self._engine
        scopes = engine.scopes_served()
        if time.monotonic() - self._checked_at >= _UPKEEP_SECONDS:
            self._checked_at = time.monotonic()
            engine.schedule_upkeep(*scopes)
        waiting = bool(scopes) and bool(engine.backend.find_episodes(scopes, EpisodeQuery(state="pending"), limit=1))
        stale = engine.search.index.stale_scopes(scopes) if scopes else []
        if waiting or stale:
            engine.wake(*stale)
        pause = engine.queue.pause if engine.can_extract else None
        if pause is not None:
            return self._state("paused", pause.reason)
        return self._state("working" if waiting or stale else "idle")

    def _state(self, state: _State, reason: str = "") -> WorkerState:
        return WorkerState(
            state=state, reason=reason or None, errors=tuple(self._engine.background_errors()), at=utc_now()
        )
