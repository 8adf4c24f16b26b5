"""Which communities a partition goes on with, and what that changes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from graphmem.communities.detect import kept_keys
from graphmem.communities.facts import Ints
from graphmem.models import Partition, new_id


@dataclass(frozen=True, slots=True)
class Group:
    """A group of a level that is a community.

    Attributes
    ----------
    number
        Of the group on its level.
    id, parent_id
        Of the community, and of the one on the level before that it is part of.
    """

    number: int
    id: str
    parent_id: str | None


def match_levels(partition: Partition, keys: Mapping[int, Mapping[str, str]]) -> list[list[Group]]:
    """Return the groups of each level that are communities, with the ids that they go on with, or new ones.

    Parameters
    ----------
    partition
        What was found. Groups of one are left out, and so are those that are the whole of a group of the level
        before: a level holds what was split.
    keys
        Of each level: entity id → id of the community that it is in at present.
    """
    levels: list[list[Group]] = []
    owner: list[str] = []  # of each group of the level before: the community that its nodes are in
    for level, labels in enumerate(partition.levels):
        before = partition.levels[level - 1] if level else None
        parent = _parents(labels, before)
        real = _communities(labels, before)
        kept = kept_keys(partition, keys.get(level, {}), level, real)
        groups = [
            Group(n, kept.get(n) or new_id(), None if parent is None else owner[int(parent[n])])
            for n in np.flatnonzero(real).tolist()
        ]
        ids = {group.number: group.id for group in groups}
        # nodes of a group that is no community stay with the one of the level before
        owner = [ids.get(n) or ("" if parent is None else owner[int(parent[n])]) for n in range(len(real))]
        levels.append(groups)
    return levels


def _parents(labels: Ints, before: Ints | None) -> Ints | None:
    """Return the group of the level before that each group lies in."""
    if before is None:
        return None
    first = np.unique(labels, return_index=True)[1]
    return before[first]


def _communities(labels: Ints, before: Ints | None) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Tell for each group whether it has two nodes or more and is a part of a group of the level before."""
    sizes = np.bincount(labels)
    real = sizes >= 2
    if before is not None and len(sizes):
        real &= sizes < np.bincount(before)[_parents(labels, before)]
    return real
