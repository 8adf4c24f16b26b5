"""Rows of communities and memberships, and the input and output of community detection."""

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
        Fingerprint of the data that the name and the summary were made from; they are remade only when it changes.
    parent_id
        The community of the previous level that contains this one.
    created_at, ended_at
        When detection first found the community, and when it no longer found it.
    updated_at
        Last change of the community or its members.
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
    """Membership of an entity in a community during ``[since, until)``; leaving and returning makes two rows."""

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
        """The unique key of a membership, which is also its sort key."""
        return (self.community_id, self.entity_id, self.since)


MembershipKey = tuple[str, str, datetime]


def existed(begin: datetime, end: datetime | None, as_of: AsOf | None, *, ended: bool) -> bool:
    """Return whether a read sees a community or a membership; the single definition that every store implements.

    Both time axes share one time, at which graphmem detected the row: with `as_of` the read is at the earlier of
    `valid` and `known`. Without `as_of`, rows that haven't ended are visible. With `ended`, ended rows are visible too.
    """
    if as_of is None:
        return ended or end is None
    moment = min(as_of.valid, as_of.known)
    return begin <= moment and (ended or end is None or moment < end)


def text_is_of(updated_at: datetime, as_of: AsOf | None) -> bool:
    """Return whether the name and the summary of a community, which have no versions, are of the time of a read."""
    return as_of is None or updated_at <= min(as_of.valid, as_of.known)


def _require_order(name: str, end: datetime | None, begin_name: str, begin: datetime) -> None:
    if end is not None and end < begin:
        raise ValueError(f"{name} {end.isoformat()} lies before {begin_name} {begin.isoformat()}")


CommunityAlgorithm = Literal["label_propagation", "leiden"]
CommunityChoice = Literal["auto", "label_propagation", "leiden"]
"""An algorithm; ``auto`` is Leiden if the store or this process has it, else label propagation."""

MIN_EDGE_WEIGHT = 0.01
"""Minimum weight of an active edge in community detection, for edges of lower confidence."""


def propagation_tries(edges: int) -> int:
    """Return the number of label propagation runs for a graph with `edges` edges; the best partition is kept.

    The result depends on the node order. A small graph often collapses into one group, and another run is cheap; in a
    large graph the order makes no difference, and a tiny one has only one partition.
    """
    return max(1, min(10, edges // 5, 20_000 // max(1, edges)))


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition of the n entities of a scope that have active edges; built by `of`.

    Attributes
    ----------
    node_ids
        n entity ids, ascending.
    levels
        int arrays (n,), at least one: the group of each node, numbered from 0 without gaps in the order of the
        groups' first nodes. In the first level each group has two or more nodes; each further level splits groups of
        the previous one and may contain single nodes.
    modularity
        Modularity of the first level (Newman, Phys. Rev. E 70, 056131, 2004: weighted, undirected), in [-0.5, 1]; 0
        for an empty graph.
    algorithm
        Algorithm used in place of the requested one; None if the requested one was used.
    fallback
        Reason why the requested algorithm, or the detector of the store, was not used; empty if they were.
    """

    node_ids: list[str]
    levels: tuple[NDArray[np.int64], ...]
    modularity: float
    algorithm: CommunityAlgorithm | None = None
    fallback: str = ""

    @classmethod
    def of(cls, node_ids: Sequence[str], labels: Sequence[NDArray[np.int64]], modularity: float) -> Partition:
        """Build a partition from the labels of an algorithm.

        Parameters
        ----------
        node_ids
            n different entity ids, in any order.
        labels
            Arrays (n,), at least one, the coarsest first: any integers, equal for nodes of one group. Each level is
            intersected with the groups of the previous levels, and omitted if that splits nothing.
        modularity
            Modularity of the first level.
        """
        import numpy as np  # local import: models are imported before any computation needs numpy

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
    """Return the labels renumbered from 0 in the order of their first occurrence."""
    import numpy as np

    found, inverse = np.unique(labels, return_inverse=True)
    first = np.empty(len(found), dtype=np.int64)
    first[inverse[::-1]] = np.arange(len(labels))[::-1]  # duplicate indices: the last assignment wins
    rank = np.empty(len(found), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(found))
    return rank[inverse]
