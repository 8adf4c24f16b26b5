"""Communities as rows, their members over time, and the input and output of detection (spec: community)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from graphmem.models.base import Model, Text, UTCDateTime, new_id
from graphmem.models.rows import AsOf, Scope

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Community(Model):
    """A group of entities.

    Attributes
    ----------
    level
        0 is the partition of the scope; the communities of each further level split those of the level before.
    fingerprint
        What the name and the summary were made from; while it stays the same, they needn't be made again.
    parent_id
        The community of the level before that this one is part of.
    created_at, ended_at
        When it was found, and when it was found to be no more.
    updated_at
        When anything of it, its members included, changed last.
    """

    id: str = Field(default_factory=new_id)
    scope: Scope
    level: Annotated[int, Field(ge=0)] = 0
    name: Text = ""
    summary: Text = ""
    fingerprint: Text = ""
    parent_id: str | None = None
    created_at: UTCDateTime
    updated_at: UTCDateTime
    ended_at: UTCDateTime | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        _require_order("ended_at", self.ended_at, "created_at", self.created_at)
        _require_order("updated_at", self.updated_at, "created_at", self.created_at)
        if self.parent_id == self.id:
            raise ValueError(f"a community can't be part of itself: {self.id}")
        return self


class Membership(Model):
    """An entity was in a community during ``[since, until)``; one that left and came back has two rows."""

    community_id: str
    entity_id: str
    since: UTCDateTime
    until: UTCDateTime | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        _require_order("until", self.until, "since", self.since)
        return self

    @property
    def key(self) -> MembershipKey:
        """What is unique among the memberships of a store, and the order in which they are read."""
        return (self.community_id, self.entity_id, self.since)


MembershipKey = tuple[str, str, datetime]


def existed(begin: datetime, end: datetime | None, as_of: AsOf | None, *, ended: bool) -> bool:
    """Return whether a read sees a community or a membership: the one definition, which every store follows.

    They have one time for both axes, that at which graphmem found them: with `as_of` the moment seen is the earlier of
    `valid` and `known`. Without, what isn't over is seen. With `ended`, what is over is seen too.
    """
    if as_of is None:
        return ended or end is None
    moment = min(as_of.valid, as_of.known)
    return begin <= moment and (ended or end is None or moment < end)


def _require_order(name: str, end: datetime | None, begin_name: str, begin: datetime) -> None:
    if end is not None and end < begin:
        raise ValueError(f"{name} {end.isoformat()} lies before {begin_name} {begin.isoformat()}")


CommunityAlgorithm = Literal["label_propagation", "leiden"]

MIN_EDGE_WEIGHT = 0.01
"""What an edge of lower confidence weighs when communities are looked for: each active edge counts for something."""


def propagation_tries(edges: int) -> int:
    """Return how many times labels are propagated through a graph of so many edges, to keep the best partition.

    Which of several partitions comes out depends on the order of the nodes. In a small graph that is often one group of
    everything, and trying again costs little; in a large one it makes no difference, in a tiny one there is no choice.
    """
    return max(1, min(10, edges // 5, 20_000 // max(1, edges)))


@dataclass(frozen=True, slots=True)
class Partition:
    """Groups of the n entities of a scope that have active edges; made by `of`.

    Attributes
    ----------
    node_ids
        n entity ids, ascending.
    levels
        int arrays (n,), at least one: the group of each node, numbered from 0 without gaps, in the order of their
        first nodes. The first level is the partition, each group of two nodes or more; each further one splits
        groups of the level before and may leave nodes alone.
    modularity
        Of the first level (Newman, Phys. Rev. E 70, 056131, 2004: weighted, undirected), in [-0.5, 1]; 0 of an empty
        graph.
    """

    node_ids: list[str]
    levels: tuple[NDArray[np.int64], ...]
    modularity: float

    @classmethod
    def of(cls, node_ids: Sequence[str], labels: Sequence[NDArray[np.int64]], modularity: float) -> Partition:
        """Bring what an algorithm found into the form above.

        Parameters
        ----------
        node_ids
            n different entity ids, in any order.
        labels
            Arrays (n,), at least one, the coarsest first: any integers, equal where two nodes are in one group. A level
            is cut along the groups of those before it, and left out where that gives nothing new.
        modularity
            Of the first level.
        """
        import numpy as np  # not at the top: the models are imported before anything is computed

        ids = list(node_ids)
        if sorted(ids) == ids:
            order = np.arange(len(ids))
        else:
            order = np.argsort(np.array(ids, dtype=np.str_), kind="stable")
            ids = [ids[int(i)] for i in order]
        first = _numbered(labels[0][order])
        real = np.bincount(first) > 1
        if not real.all():
            paired = real[first]
            order, ids = order[paired], [ids[i] for i in np.flatnonzero(paired).tolist()]
            first = (np.cumsum(real) - 1)[first[paired]]
        levels = [first]
        for finer in labels[1:]:
            width = int(finer.max(initial=0)) + 1
            level = _numbered(levels[-1] * width + finer[order])
            if not np.array_equal(level, levels[-1]):
                levels.append(level)
        return cls(ids, tuple(levels), modularity)


def _numbered(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the labels as numbers from 0 in the order of their first occurrences."""
    import numpy as np

    found, inverse = np.unique(labels, return_inverse=True)
    first = np.empty(len(found), dtype=np.int64)
    first[inverse[::-1]] = np.arange(len(labels))[::-1]  # of several the last one stays
    rank = np.empty(len(found), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(found))
    return rank[inverse]
