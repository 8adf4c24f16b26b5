"""Array form of the active facts of a scope, for community detection and descriptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from graphmem.background import gc_paused
from graphmem.models import ActiveFact, Scope
from graphmem.protocols import GraphBackend
from graphmem.recall.scoring import effective_confidence, flow_weight

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Facts:
    """m active facts between n entities, in ascending order of id; about 70 bytes per fact.

    Attributes
    ----------
    node_ids
        n entity ids, ascending after `read_facts`.
    ids
        Byte strings (m,).
    source, target
        int32 arrays (m,): positions of the ends in `node_ids`.
    confidence
        float64 array (m,).
    score
        float32 array (m,): effective confidence × weight of the edge type.
    begin
        float64 array (m,): valid_from in seconds since 1970.
    """

    node_ids: list[str]
    ids: NDArray[np.bytes_]
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    confidence: Floats
    score: NDArray[np.float32]
    begin: Floats

    def between(self, node_ids: list[str]) -> Facts:
        """Return the facts between the given entities, with positions in the new `node_ids`."""
        if node_ids == self.node_ids:
            return self
        position = {node_id: n for n, node_id in enumerate(node_ids)}
        place = np.array([position.get(node_id, -1) for node_id in self.node_ids], dtype=np.int32)
        moved = replace(self, node_ids=node_ids, source=place[self.source], target=place[self.target])
        kept = (moved.source >= 0) & (moved.target >= 0)
        return moved if kept.all() else moved.chosen(kept)

    def chosen(self, rows: NDArray[np.bool_]) -> Facts:
        """Return the facts selected by a mask."""
        return Facts(
            self.node_ids,
            self.ids[rows],
            self.source[rows],
            self.target[rows],
            self.confidence[rows],
            self.score[rows],
            self.begin[rows],
        )


def read_facts(backend: GraphBackend, scope: Scope, chunk: int) -> Facts:
    """Read the active facts between unarchived entities, `chunk` rows at a time.

    Concurrent writes may or may not be included.
    """
    number: dict[str, int] = {}  # entity id → number in order of first occurrence
    pages = [_columns([], number)]
    after: str | None = ""
    while after is not None:
        with gc_paused():
            page = backend.find_active_facts(scope, after=after, limit=chunk)
            pages.append(_columns(page, number))
            after = page[-1].id if page else None
    found = Facts(list(number), *(np.concatenate(column) for column in zip(*pages, strict=True)))
    return found.between(sorted(number))


def _columns(facts: Sequence[ActiveFact], number: dict[str, int]) -> tuple[NDArray[np.generic], ...]:
    """Return the columns of `Facts` for a page; new entities are added to `number`."""
    ids, source, target, kinds, confidences, counts, begin = zip(*facts, strict=True) if facts else ((),) * 7
    for node_id in (*source, *target):
        number.setdefault(node_id, len(number))
    confidence = np.array(confidences, dtype=np.float64)
    score = effective_confidence(confidence, np.array(counts, dtype=np.float64)) * flow_weight(kinds)
    return (
        np.array([fact_id.encode() for fact_id in ids], dtype=np.bytes_),
        np.array([number[node_id] for node_id in source], dtype=np.int32),
        np.array([number[node_id] for node_id in target], dtype=np.int32),
        confidence,
        score.astype(np.float32),
        np.array(begin, dtype=np.float64),
    )
