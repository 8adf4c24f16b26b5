"""Matching of the groups of a partition with the previous communities, which they continue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graphmem.models import Partition, new_id
from graphmem.models.arrays import Bools, Int64s


@dataclass(frozen=True, slots=True)
class Group:
    """A group of a level that forms a community.

    Attributes
    ----------
    number
        Number of the group on its level.
    id, parent_id
        Id of the community, and of its parent on the previous level.
    """

    number: int
    id: str
    parent_id: str | None


@dataclass(frozen=True, slots=True)
class Before:
    """The previous communities of a partition's nodes on one level; built by `of`.

    Attributes
    ----------
    keys
        Keys of the communities, ascending.
    places
        int64 array (n,): position in `keys` of each node's community, -1 for a node without one.
    gone
        Ids of entities with a community that aren't among the nodes.
    """

    keys: list[str]
    places: Int64s
    gone: frozenset[str]

    @classmethod
    def of(cls, node_ids: Sequence[str], seed: Mapping[str, str]) -> Before:
        """Build the value for nodes from `seed`: entity id → key of its community."""
        keys = sorted(set(seed.values()))
        number: dict[str | None, int] = {key: n for n, key in enumerate(keys)}
        number[None] = -1
        found = map(number.__getitem__, map(seed.get, node_ids))
        places = np.fromiter(found, dtype=np.int64, count=len(node_ids))
        is_whole = np.count_nonzero(places >= 0) == len(seed)
        return cls(keys, places, frozenset() if is_whole else frozenset(seed.keys() - set(node_ids)))

    def labels(self) -> Int64s:
        """Return a label per node: the first position of its community, or its own position without a community."""
        own = np.arange(len(self.places), dtype=np.int64)
        first = np.zeros(len(self.keys) + 1, dtype=np.int64)
        first[self.places[::-1]] = own[::-1]  # the last assignment wins; nodes without a community share the last slot
        return np.where(self.places < 0, own, first[self.places])

    def kept_by(self, labels: Int64s, groups: Bools | None = None) -> dict[int, str]:
        """Return group → key of the community that it continues.

        Groups and communities are matched greedily by the number of shared members, descending; ties go to the
        smaller group number, then the smaller key. The matching is one-to-one, so the remainder of a split community
        and a community merged into another stay unmatched.

        Parameters
        ----------
        labels
            int array (n,): the group of each node.
        groups
            bool array: the groups that may be matched; None means all.
        """
        known = self.places >= 0 if groups is None else (self.places >= 0) & groups[labels]
        width = max(1, len(self.keys))
        pairs, shared = np.unique(labels[known] * width + self.places[known], return_counts=True)
        kept: dict[int, str] = {}
        taken: set[int] = set()
        for pair in pairs[np.lexsort([pairs, -shared])].tolist():
            group, key = divmod(pair, width)
            if group not in kept and key not in taken:
                kept[group] = self.keys[key]
                taken.add(key)
        return kept


def kept_keys(partition: Partition, seed: Mapping[str, str]) -> dict[int, str]:
    """Return group of the first level → key of the community that it continues, given `seed`: entity id → key."""
    return Before.of(partition.node_ids, seed).kept_by(partition.levels[0])


def match_levels(partition: Partition, before: Mapping[int, Before]) -> list[list[Group]]:
    """Return the groups of each level that form communities, with the ids that they continue or new ones.

    Parameters
    ----------
    partition
        The detected partition. Groups of one node, and groups identical to their parent group, form no community.
    before
        Level → previous communities of the nodes.
    """
    levels: list[list[Group]] = []
    owner: list[str] = []  # community of each group of the previous level
    for level, labels in enumerate(partition.levels):
        coarser = partition.levels[level - 1] if level else None
        parent = _parents(labels, coarser)
        real = _communities(labels, coarser)
        kept = before[level].kept_by(labels, real) if level in before else {}
        groups = [
            Group(n, kept.get(n) or new_id(), None if parent is None else owner[int(parent[n])])
            for n in np.flatnonzero(real).tolist()
        ]
        ids = {group.number: group.id for group in groups}
        # nodes of a group without a community stay with that of the previous level
        owner = [ids.get(n) or ("" if parent is None else owner[int(parent[n])]) for n in range(len(real))]
        levels.append(groups)
    return levels


def moves(
    partition: Partition, groups: Sequence[Group], level: int, before: Before
) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the entities that leave a community of a level, and (entity, community) of those that join, ascending."""
    keys = list(dict.fromkeys([*before.keys, *(group.id for group in groups)]))
    now = np.full(len(partition.node_ids), -1, dtype=np.int64)
    if groups:
        number = {key: n for n, key in enumerate(keys)}
        labels = partition.levels[level]
        of_group = np.full(int(labels.max()) + 1, -1, dtype=np.int64)
        of_group[[group.number for group in groups]] = [number[group.id] for group in groups]
        now = of_group[labels]
    left: list[str] = list(before.gone)
    came: list[tuple[str, str]] = []
    moved = np.flatnonzero(now != before.places)
    places: list[int] = now[moved].tolist()
    for node, old, new in zip(moved.tolist(), before.places[moved].tolist(), places, strict=True):
        if old >= 0:
            left.append(partition.node_ids[node])
        if new >= 0:
            came.append((partition.node_ids[node], keys[new]))
    return left, came


def _parents(labels: Int64s, coarser: Int64s | None) -> Int64s | None:
    """Return the group of the previous level that contains each group."""
    if coarser is None:
        return None
    first = np.unique(labels, return_index=True)[1]
    return coarser[first]


def _communities(labels: Int64s, coarser: Int64s | None) -> Bools:
    """Return for each group whether it has at least two nodes and is smaller than its parent group."""
    sizes = np.bincount(labels)
    real = sizes >= 2
    if coarser is not None and len(sizes):
        real &= sizes < np.bincount(coarser)[_parents(labels, coarser)]
    return real
