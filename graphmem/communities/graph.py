"""Array forms of the active facts of a scope: as they are, as a weighted graph, and by community.

n is the number of nodes, m of facts or distinct edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from graphmem.models import MIN_EDGE_WEIGHT, ActiveFact, Scope
from graphmem.models.arrays import Bools, Float32s, Float64s, Int64s
from graphmem.process import gc_paused
from graphmem.protocols import GraphBackend
from graphmem.recall.scoring import effective_confidence, flow_weight

Number = TypeVar("Number", bound=np.generic)
UNIT = 1_000_000
"""Weights are integers in millionths, so that sums are exact and ties don't depend on the order of addition."""

Ends = tuple[int, int]
"""Positions of the two ends of a fact, the smaller one first."""


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
    confidence: Float64s
    score: Float32s
    begin: Float64s

    def between(self, node_ids: list[str]) -> Facts:
        """Return the facts between the given entities, with positions in the new `node_ids`."""
        if node_ids == self.node_ids:
            return self
        position = {node_id: n for n, node_id in enumerate(node_ids)}
        place = np.array([position.get(node_id, -1) for node_id in self.node_ids], dtype=np.int32)
        moved = replace(self, node_ids=node_ids, source=place[self.source], target=place[self.target])
        kept = (moved.source >= 0) & (moved.target >= 0)
        return moved if kept.all() else moved.chosen(kept)

    def chosen(self, rows: Bools) -> Facts:
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
        with gc_paused:
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


@dataclass(frozen=True, slots=True)
class Pairs:
    """The weighted edge list of an undirected graph, with possible parallel edges.

    Attributes
    ----------
    node_ids
        n entity ids, ascending; each has an edge.
    source, target
        int arrays of the same length: positions in `node_ids`; the direction is ignored.
    weight
        int64 array, in millionths, all positive.
    """

    node_ids: list[str]
    source: NDArray[np.integer]
    target: NDArray[np.integer]
    weight: Int64s

    @classmethod
    def of(cls, node_ids: list[str], source: NDArray[np.integer], target: NDArray[np.integer], weight: Int64s) -> Pairs:
        """Build the edge list; nodes without an edge are dropped."""
        has_edge = np.zeros(len(node_ids), dtype=bool)
        has_edge[source] = has_edge[target] = True
        if has_edge.all():
            return cls(node_ids, source, target, weight)
        kept = np.flatnonzero(has_edge)
        position = np.zeros(len(node_ids), dtype=np.int32)
        position[kept] = np.arange(len(kept), dtype=np.int32)
        return cls([node_ids[i] for i in kept.tolist()], position[source], position[target], weight)

    def sums(self, values: Int64s) -> Float64s:
        """Return the sum of values over the edges of each node, shape (n,); exact below 2⁵³."""
        count = len(self.node_ids)
        ends = (np.bincount(end, values, count) for end in (self.source, self.target))
        return np.add(*ends, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class EntityGraph:
    """An undirected weighted graph in compressed sparse row format, with each edge in the rows of both ends.

    Attributes
    ----------
    node_ids
        n entity ids, ascending.
    begin
        int64 array (n + 1,): row offsets, and the end of the last row.
    neighbor
        int32 array (2 m,): positions of the neighbors, distinct and ascending within a row.
    weight
        int64 array (2 m,): weights of these edges, in millionths.
    """

    node_ids: list[str]
    begin: Int64s
    neighbor: NDArray[np.int32]
    weight: Int64s

    @classmethod
    def of(cls, pairs: Pairs, rows: Bools | None = None) -> EntityGraph:
        """Build a graph from an edge list; weights of parallel edges are added.

        Parameters
        ----------
        pairs
            The edge list.
        rows
            bool array (n,): the nodes to build rows for; other rows are empty. None means all.
        """
        every = slice(None)
        out = every if rows is None else np.flatnonzero(rows[pairs.source])
        back = every if rows is None else np.flatnonzero(rows[pairs.target])
        row = np.concatenate([pairs.source[out], pairs.target[back]]).astype(np.int64)
        neighbor = np.concatenate([pairs.target[out], pairs.source[back]])
        weight = np.concatenate([pairs.weight[out], pairs.weight[back]])
        count = len(pairs.node_ids)
        bits = count.bit_length()
        key = row << bits | neighbor
        order = ordered(key, 1 << 2 * bits)
        key, weight = key[order], weight[order]
        del order
        first = runs(key)
        total = np.add.reduceat(weight, first) if len(first) else weight
        row, neighbor = key[first] >> bits, (key[first] & ((1 << bits) - 1)).astype(np.int32)
        begin = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=count))])
        return cls(pairs.node_ids, begin, neighbor, total)

    def by_row(self, values: NDArray[Number]) -> NDArray[Number]:
        """Return the value of the row's node for each entry of `neighbor`: array (n,) to array (2 m,)."""
        return np.repeat(values, np.diff(self.begin))


def pairs_of(facts: Facts) -> Pairs:
    """Return the edge list of facts, weighted by confidence."""
    return Pairs(facts.node_ids, facts.source, facts.target, in_units(facts.confidence))


def in_units(confidence: Float64s) -> Int64s:
    """Return the weights of edges with these confidences, in millionths."""
    return np.rint(np.maximum(confidence, MIN_EDGE_WEIGHT) * UNIT).astype(np.int64)


def ordered(values: NDArray[np.integer], end: int) -> Int64s:
    """Return the stable sort order of integers in [0, end).

    Sorts by 16 bits at a time, for which numpy has a radix sort: three times as fast as its sort of wider integers.
    """
    order = np.argsort((values & 0xFFFF).astype(np.uint16), kind="stable")
    for shift in range(16, max(0, end - 1).bit_length(), 16):
        digit = (values[order] >> shift & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(digit, kind="stable")]
    return order


def runs(values: Int64s) -> Int64s:
    """Return the start of each run of equal values."""
    changes = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return np.flatnonzero(changes)


def modularity(pairs: Pairs, labels: Int64s) -> float:
    """Return the modularity of a partition: Σ (inside / w - (degree / 2w)²) over the groups; 0 for an empty graph.

    Newman, Phys. Rev. E 70, 056131 (2004): weighted and undirected; w is the sum of all weights.
    """
    total = int(pairs.weight.sum())
    if not total:
        return 0.0
    inside = int(pairs.weight @ (labels[pairs.source] == labels[pairs.target]))
    degree = np.bincount(labels, weights=pairs.sums(pairs.weight)) / (2 * total)
    # not `degree @ degree`: BLAS would start threads that keep spinning afterwards
    return inside / total - float(np.square(degree).sum())


class CommunityFacts:
    """The facts of a partition's level, by group.

    Parameters
    ----------
    facts
        Facts between the nodes of the partition; facts between different groups are ignored.
    labels
        int array (n,): the group of each node, numbered from 0 without gaps.
    """

    def __init__(self, facts: Facts, labels: Int64s) -> None:
        self._facts = facts
        groups = int(labels.max(initial=-1)) + 1
        self._members = ordered(labels, groups)
        self._member_ends = np.cumsum(np.bincount(labels, minlength=groups))
        narrow = labels.astype(np.int32)  # halves the memory traffic
        of_source = narrow[facts.source]
        same = np.flatnonzero(of_source == narrow[facts.target])
        self._rows = same[ordered(of_source[same], groups)]
        self._row_ends = np.cumsum(np.bincount(of_source[same], minlength=groups))
        self._degree = np.zeros(len(labels))
        for end in (facts.source, facts.target):
            self._degree += np.bincount(end[same], weights=facts.score[same], minlength=len(labels))

    def members(self, group: int) -> Int64s:
        """Return the positions of a group's nodes, ascending."""
        begin = self._member_ends[group - 1] if group else 0
        return self._members[begin : self._member_ends[group]]

    def central(self, group: int, count: int) -> list[int]:
        """Return the positions of the members with the highest weight of facts in the group; ties by position."""
        members = self.members(group)
        return members[np.argsort(-self._degree[members], kind="stable")[:count]].tolist()

    def top(self, group: int, count: int) -> list[tuple[str, Ends]]:
        """Return the best facts of a group, ordered by score, centrality of the ends, latest begin, and id."""
        rows, facts = self._of(group), self._facts
        if len(rows) > count:  # preselect by score, because sorting is the most expensive step
            score = facts.score[rows]
            rows = rows[score >= np.partition(score, -count)[-count]]
        central = self._degree[facts.source[rows]] + self._degree[facts.target[rows]]
        best = rows[np.lexsort((-facts.begin[rows], -central, -facts.score[rows]))[:count]]
        source, target = facts.source[best], facts.target[best]
        ends = zip(np.minimum(source, target).tolist(), np.maximum(source, target).tolist(), strict=True)
        return list(zip(map(bytes.decode, facts.ids[best].tolist()), ends, strict=True))

    def period(self, group: int) -> tuple[float, float] | None:
        """Return the first and the last start of a group's facts, in seconds since 1970."""
        begin = self._facts.begin[self._of(group)]
        return (float(begin.min()), float(begin.max())) if len(begin) else None

    def count(self, group: int) -> int:
        """Return the number of facts of a group."""
        return len(self._of(group))

    def fingerprint(self, group: int, node_ids: Sequence[str]) -> str:
        """Return the BLAKE3 of a group's entity ids (of ascending `node_ids`) and fact ids, 64 hexadecimal digits."""
        members: list[int] = self.members(group).tolist()
        entities = "\n".join([node_ids[n] for n in members]).encode()
        padded = np.char.add(self._facts.ids.take(self._of(group)), b"\n").tobytes()
        facts = padded.replace(b"\0", b"").removesuffix(b"\n")
        return blake3(entities + b"\n\n" + facts).hexdigest()

    def _of(self, group: int) -> Int64s:
        begin = self._row_ends[group - 1] if group else 0
        return self._rows[begin : self._row_ends[group]]
