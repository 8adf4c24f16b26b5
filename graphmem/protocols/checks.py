"""Checks of arguments that every store makes, with the same messages."""

from __future__ import annotations

from itertools import chain

from graphmem.errors import InvalidInput
from graphmem.models import Changes, RecallTrace, Scope


def require_scope(scope: Scope, changes: Changes) -> None:
    """Raise `InvalidInput` for a row of another scope than that of the write."""
    for row in chain(changes.entities, changes.edges, changes.communities, changes.recalls, changes.merges):
        if row.scope is not scope and row.scope != scope:
            kind = "recall" if isinstance(row, RecallTrace) else type(row).__name__.lower()
            raise InvalidInput(f"{kind} {row.id}: its scope is {row.scope}, the write's is {scope}")


def require_no_cursor(after: str, *, newest_first: bool) -> None:
    """Raise `InvalidInput` for a cursor in a newest-first read, which has a single page."""
    if after and newest_first:
        raise InvalidInput(f"after={after!r}: a read with newest_first has one page")
