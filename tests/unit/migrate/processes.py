"""Processes of a migration in a test, whose background runs only when the test calls it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from graphmem.background import BackgroundJob
from graphmem.migrate.backend import following_backend
from graphmem.migrate.follower import Follower
from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend


def sleep_on(_: BackgroundJob) -> None:
    """Do nothing in the background."""


def open_process(url: str, open_secondary: Callable[[], GraphBackend], now: Callable[[], float]) -> GraphBackend:
    """Return a store of a migration as a process of its own has it."""
    store = following_backend(open_backend(url), open_backend)
    inside = cast("Any", store)
    inside._follower = Follower(inside._route.primary, open_secondary, inside._route.move.id, now)
    return store
