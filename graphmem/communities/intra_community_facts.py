"""Facts within communities, the input of fingerprints and descriptions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from blake3 import blake3

from graphmem.communities.facts import Facts, Ints
from graphmem.communities.graph import ordered

Ends = tuple[int, int]
"""Positions of the two ends of a fact, the smaller one first."""


class CommunityFacts:
    """The facts of a partition's level, by group.

    Parameters
    ----------
    facts
        Facts between the nodes of the partition; facts between different groups are ignored.
    labels
        int array (n,): the group of each node, numbered from 0 without gaps.
    """

    def __init__(self, facts: Facts, labels: Ints) -> None:
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

    def members(self, group: int) -> Ints:
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

    def _of(self, group: int) -> Ints:
        begin = self._row_ends[group - 1] if group else 0
        return self._rows[begin : self._row_ends[group]]
