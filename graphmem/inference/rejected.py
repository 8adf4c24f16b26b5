"""Inferred facts that somebody ended by hand, in a merge of their entities.

They are kept, so that they aren't inferred again. The inferred facts that they follow from are kept as well, because an
erasure finds them through these. Pure functions, without a store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from graphmem.inference.premises import NOT_IMPLIED, reason_by_hand
from graphmem.models import PREMISES, Edge, is_retracted, retracted


@dataclass(slots=True)
class MovedRejections:
    """What a merge does with rejected facts.

    Attributes
    ----------
    before
        Facts that change, as they are before the merge.
    dropped
        Rejected facts between the merged entities, which go.
    rows
        Rows to write.
    """

    before: list[Edge] = field(default_factory=list[Edge])
    dropped: list[Edge] = field(default_factory=list[Edge])
    rows: list[Edge] = field(default_factory=list[Edge])


def move_rejected(
    known: Iterable[Edge], premises: Mapping[str, str | None], repoint: Callable[[Edge], Edge], at: datetime
) -> MovedRejections:
    """Move the facts that somebody rejected to the kept entity.

    Parameters
    ----------
    known
        Inferred facts of the merged entity, and those that depend on its facts.
    premises
        Stated facts that go: id → id of the fact that takes their place, or None.
    repoint
        Replaces the merged entity of a fact by the kept one.
    at
        Time of the merge.
    """
    found = MovedRejections()
    place = dict(premises)
    for row in _needed(known):
        by_hand, there = reason_by_hand(row) is not None, repoint(row)
        left = dict.fromkeys(new for i in row.premises if (new := place.get(i, i)) is not None)
        if there.source_id == there.target_id:
            place[row.id] = None
            found.dropped += [row] if by_hand else []
        elif not left:
            place[row.id] = None
            found.before += [row] if by_hand else []
        else:
            there = there.changed(properties={**row.properties, PREMISES: " ".join(left)})
            if not by_hand and not is_retracted(row):
                there = retracted(there, at, NOT_IMPLIED)
            if there != row:
                found.before.append(row)
                found.rows.append(there)
    return found


def _needed(known: Iterable[Edge]) -> list[Edge]:
    """Return the facts that were rejected, and those that they follow from, each after its premises."""
    rows = {row.id: row for row in known}
    found, needed = {i for i, row in rows.items() if reason_by_hand(row)}, set[str]()
    while found:
        needed |= found
        found = {premise for i in found for premise in rows[i].premises if premise in rows} - needed
    return [rows[i] for i in sorted(needed)]  # ids are in the order of time, and premises are stored first
