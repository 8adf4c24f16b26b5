"""Dry runs: work is done in a transaction that is undone, so that what it reports is what it would do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from graphmem.protocols import GraphBackend

T = TypeVar("T")


class _Undone(Exception):
    """Undoes the transaction that it is raised in."""


def rehearsed(backend: GraphBackend, work: Callable[[], T]) -> T:
    """Run `work` in a transaction, undo it, and return what it returned."""
    done: list[T] = []

    def undone() -> None:
        done[:] = [work()]
        raise _Undone

    try:
        backend.atomic(undone)
    except _Undone:
        return done[0]
    raise AssertionError("a transaction that raises is undone")
