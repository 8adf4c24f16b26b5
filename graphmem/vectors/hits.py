"""Joins what was found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphmem.errors import IndexMismatch
from graphmem.models import IndexKind
from graphmem.protocols.vectors import VectorHit, VectorRows


def best_hits(hits: Iterable[VectorHit], limit: int) -> list[VectorHit]:
    """Return the best of the hits of several scopes, in the order that a search gives them."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.key, hit.scope.key))[:limit]


def last_of_each(items: Sequence[tuple[str, VectorRows]]) -> dict[str, VectorRows]:
    """Return the vectors of each key; of a key that comes twice the later ones."""
    return dict(items)


def require_dimension(place: str, kind: IndexKind, built: int, given: int) -> None:
    """Refuse vectors of another dimension.

    Raises
    ------
    IndexMismatch
        With what to do.
    """
    if built != given:
        raise IndexMismatch(
            f"{place}: its vectors of kind {kind} have {built} numbers, these have {given}; configure the embedding "
            "model that it was built with, or build the index anew: graphmem reindex"
        )
