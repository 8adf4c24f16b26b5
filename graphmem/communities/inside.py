"""The facts inside of communities, as arrays: what fingerprints and descriptions are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from graphmem.communities.graph import Ints
from graphmem.models import EdgeQuery, Scope
from graphmem.protocols import GraphBackend
from graphmem.recall.score import effective_confidence, flow_weight

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class InsideFacts:
    """The m active facts of which both ends are in one community of the first level, in ascending order of id.

    They take about 70 bytes a fact.

    Attributes
    ----------
    ids
        Byte strings (m,).
    source, target
        int32 arrays (m,): positions of the ends among the nodes of the partition.
    score
        float32 array (m,): effective confidence × weight of the edge type.
    begin
        float64 array (m,): valid_from in seconds since 1970.
    """

    ids: NDArray[np.bytes_]
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    score: NDArray[np.float32]
    begin: Floats


def read_inside(backend: GraphBackend, scope: Scope, node_ids: Sequence[str], labels: Ints, chunk: int) -> InsideFacts:
    """Read the facts inside of groups, `chunk` rows at a time.

    Parameters
    ----------
    backend, scope
        Whose facts.
    node_ids
        n entity ids.
    labels
        int array (n,): the group of each.
    chunk
        Rows that are read at once.
    """
    position = {node_id: n for n, node_id in enumerate(node_ids)}
    ids: list[NDArray[np.bytes_]] = [np.zeros(0, dtype="S1")]
    ends: list[NDArray[np.int32]] = [np.zeros((0, 2), dtype=np.int32)]
    scores: list[NDArray[np.float32]] = [np.zeros(0, dtype=np.float32)]
    begins: list[Floats] = [np.zeros(0)]
    after = ""
    while len(labels) and (page := backend.find_edges([scope], EdgeQuery(versions="active"), after=after, limit=chunk)):
        after = page[-1].id
        pairs = np.array([(position.get(e.source_id, -1), position.get(e.target_id, -1)) for e in page], dtype=np.int32)
        inside = (pairs >= 0).all(axis=1) & (labels[pairs[:, 0]] == labels[pairs[:, 1]])
        confidence, count = np.array([(e.confidence, e.retrieval_count) for e in page]).T
        score = effective_confidence(confidence, count) * flow_weight([e.edge_type for e in page])
        ids.append(np.array([e.id.encode() for e in page])[inside])
        ends.append(pairs[inside])
        scores.append(score[inside].astype(np.float32))
        begins.append(np.array([e.valid_from.timestamp() for e in page])[inside])
    both = np.concatenate(ends)
    return InsideFacts(
        np.concatenate(ids), both[:, 0].copy(), both[:, 1].copy(), np.concatenate(scores), np.concatenate(begins)
    )


class Grouped:
    """The facts of a partition's level, by group.

    Parameters
    ----------
    facts
        Of the first level.
    labels
        int array (n,): the group of each node, numbered from 0 without gaps.
    """

    def __init__(self, facts: InsideFacts, labels: Ints) -> None:
        self._facts = facts
        groups = int(labels.max(initial=-1)) + 1
        self._members = np.argsort(labels, kind="stable")
        self._member_ends = np.cumsum(np.bincount(labels, minlength=groups))
        of_source = labels[facts.source]
        same = np.flatnonzero(of_source == labels[facts.target])
        self._rows = same[np.argsort(of_source[same], kind="stable")]
        self._row_ends = np.cumsum(np.bincount(of_source[same], minlength=groups))
        degree = np.zeros(len(labels))
        for end in (facts.source, facts.target):
            np.add.at(degree, end[same], facts.score[same])
        self._degree = degree

    def members(self, group: int) -> Ints:
        """Return the positions of a group's nodes, ascending."""
        begin = self._member_ends[group - 1] if group else 0
        return self._members[begin : self._member_ends[group]]

    def central(self, group: int, count: int) -> list[int]:
        """Return the positions of the members with the most facts inside, by weight; of equal ones the first."""
        members = self.members(group)
        return members[np.lexsort((members, -self._degree[members]))[:count]].tolist()

    def top(self, group: int, count: int) -> list[str]:
        """Return ids of the best facts of a group: by score, then between its central members, then the newest."""
        rows, facts = self._of(group), self._facts
        central = self._degree[facts.source[rows]] + self._degree[facts.target[rows]]
        best = np.lexsort((facts.ids[rows], -facts.begin[rows], -central, -facts.score[rows]))
        return [i.decode() for i in facts.ids[rows[best[:count]]].tolist()]

    def period(self, group: int) -> tuple[float, float] | None:
        """Return from when to when the facts of a group began to hold, in seconds since 1970."""
        begin = self._facts.begin[self._of(group)]
        return (float(begin.min()), float(begin.max())) if len(begin) else None

    def count(self, group: int) -> int:
        """Return how many facts a group has."""
        return len(self._of(group))

    def fingerprint(self, group: int, node_ids: Sequence[str]) -> str:
        """Return the BLAKE3 of a group's entity ids and fact ids, both ascending, 64 hexadecimal digits."""
        members: list[int] = self.members(group).tolist()
        entities = b"\n".join(sorted(node_ids[n].encode() for n in members))
        facts = b"\n".join(self._facts.ids[self._of(group)].tolist())
        return blake3(entities + b"\n\n" + facts).hexdigest()

    def _of(self, group: int) -> Ints:
        begin = self._row_ends[group - 1] if group else 0
        return self._rows[begin : self._row_ends[group]]
