"""The active facts of a scope as arrays: what the graph is made of and communities are described by, read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphmem.models import Edge, EdgeQuery, EntityQuery, Scope
from graphmem.protocols import GraphBackend
from graphmem.recall.score import effective_confidence, flow_weight

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Facts:
    """m active facts between n entities, in ascending order of id; they take about 70 bytes each.

    Attributes
    ----------
    node_ids
        n entity ids.
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

    def inside(self, node_ids: list[str], labels: Ints) -> Facts:
        """Return the facts of which both ends are in one group.

        Parameters
        ----------
        node_ids
            Entity ids; facts of others are left out.
        labels
            int array: the group of each.
        """
        source, target = self.source, self.target
        kept = np.ones(len(source), dtype=bool)
        if node_ids != self.node_ids:
            position = {node_id: n for n, node_id in enumerate(node_ids)}
            place = np.array([position.get(node_id, -1) for node_id in self.node_ids], dtype=np.int32)
            source, target = place[source], place[target]
            kept = (source >= 0) & (target >= 0)
        kept[kept] = labels[source[kept]] == labels[target[kept]]
        return Facts(
            node_ids,
            self.ids[kept],
            source[kept],
            target[kept],
            self.confidence[kept],
            self.score[kept],
            self.begin[kept],
        )


def read_facts(backend: GraphBackend, scope: Scope, chunk: int, node_ids: Sequence[str] | None = None) -> Facts:
    """Read the active facts of a scope, `chunk` rows at a time.

    What is written meanwhile may be seen or not; facts about entities that are newer than the reading are left out.

    Parameters
    ----------
    backend, scope
        Whose facts.
    chunk
        Rows that are read at once.
    node_ids
        Facts between these entities only; all of the scope if None.
    """
    if node_ids is None:
        node_ids = [entity.id for entity in backend.all_entities([scope], EntityQuery(), chunk=chunk)]
    position = {node_id: n for n, node_id in enumerate(node_ids)}
    parts = [_columns([], position)]
    after = ""
    query = EdgeQuery(versions="active")
    while position and (page := backend.find_edges([scope], query, after=after, limit=chunk)):
        parts.append(_columns([e for e in page if e.source_id in position and e.target_id in position], position))
        after = page[-1].id
    return Facts(list(node_ids), *(np.concatenate(column) for column in zip(*parts, strict=True)))


def _columns(edges: Sequence[Edge], position: dict[str, int]) -> tuple[NDArray[np.generic], ...]:
    confidence = np.array([e.confidence for e in edges], dtype=np.float64)
    count = np.array([e.retrieval_count for e in edges], dtype=np.float64)
    score = effective_confidence(confidence, count) * flow_weight([e.edge_type for e in edges])
    return (
        np.array([e.id.encode() for e in edges], dtype=np.bytes_),
        np.array([position[e.source_id] for e in edges], dtype=np.int32),
        np.array([position[e.target_id] for e in edges], dtype=np.int32),
        confidence,
        score.astype(np.float32),
        np.array([e.valid_from.timestamp() for e in edges], dtype=np.float64),
    )
