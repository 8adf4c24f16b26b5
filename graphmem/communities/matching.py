"""Which communities a partition goes on with, and what that changes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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


@dataclass(frozen=True, slots=True)
class Before:
    """Which communities of a level the nodes of a partition were in; made by `of`.

    Attributes
    ----------
    keys
        Of the communities, ascending.
    places
        int64 array (n,): the position in `keys` of that of each node, -1 of one that was in none.
    gone
        Ids of entities that were in one and aren't among the nodes.
    """

    keys: list[str]
    places: Ints
    gone: frozenset[str]

    @classmethod
    def of(cls, node_ids: Sequence[str], seed: Mapping[str, str]) -> Before:
        """Look up some nodes in `seed`: entity id → key of its community."""
        keys = sorted(set(seed.values()))
        number: dict[str | None, int] = {key: n for n, key in enumerate(keys)}
        number[None] = -1
        found = map(number.__getitem__, map(seed.get, node_ids))
        places = np.fromiter(found, dtype=np.int64, count=len(node_ids))
        is_whole = np.count_nonzero(places >= 0) == len(seed)
        return cls(keys, places, frozenset() if is_whole else frozenset(seed.keys() - set(node_ids)))

    def labels(self) -> Ints:
        """Return a label for each node: the position of the first one of the same community, of one in none its own."""
        own = np.arange(len(self.places), dtype=np.int64)
        first = np.zeros(len(self.keys) + 1, dtype=np.int64)
        first[self.places[::-1]] = own[::-1]  # of several the last one stays; those in none share the last place
        return np.where(self.places < 0, own, first[self.places])

    def kept_by(self, labels: Ints, groups: NDArray[np.bool_] | None = None) -> dict[int, str]:
        """Return group → key of the community that it goes on with.

        The group and the community that share the most members belong together, then the next ones; of equal shares
        the smaller group number, then the smaller key, comes first. Each group gets at most one key and each key one
        group: what is left of a community that was split, and what merged into another, go without.

        Parameters
        ----------
        labels
            int array (n,): the group of each node.
        groups
            bool array: the groups that may have a key; all if None.
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
    """Return group of the first level → key of the community of `seed`, entity id → key, that it goes on with."""
    return Before.of(partition.node_ids, seed).kept_by(partition.levels[0])


def match_levels(partition: Partition, before: Mapping[int, Before]) -> list[list[Group]]:
    """Return the groups of each level that are communities, with the ids that they go on with, or new ones.

    Parameters
    ----------
    partition
        What was found. Groups of one are left out, and so are those that are the whole of a group of the level
        before: a level holds what was split.
    before
        Of each level: where its nodes are at present.
    """
    levels: list[list[Group]] = []
    owner: list[str] = []  # of each group of the level before: the community that its nodes are in
    for level, labels in enumerate(partition.levels):
        episode_vectors = partition.levels[level - 1] if level else None
        parent = _parents(labels, episode_vectors)
        real = _communities(labels, episode_vectors)
        kept = before[level].kept_by(labels, real) if level in before else {}
        groups = [
            Group(n, kept.get(n) or new_id(), None if parent is None else owner[int(parent[n])])
            for n in np.flatnonzero(real).tolist()
        ]
        ids = {group.number: group.id for group in groups}
        # nodes of a group that is no community stay with the one of the level before
        owner = [ids.get(n) or ("" if parent is None else owner[int(parent[n])]) for n in range(len(real))]
        levels.append(groups)
    return levels


def moves(
    partition: Partition, groups: Sequence[Group], level: int, before: Before
) -> tuple[list[str], list[tuple[str, str]]]:
    """Return who leaves a community of a level, and in ascending order who comes to which."""
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


def _parents(labels: Ints, episode_vectors: Ints | None) -> Ints | None:
    """Return the group of the level before that each group lies in."""
    if episode_vectors is None:
        return None
    first = np.unique(labels, return_index=True)[1]
    return episode_vectors[first]


def _communities(labels: Ints, episode_vectors: Ints | None) -> NDArray[np.bool_]:
    """Tell for each group whether it has two nodes or more and is a part of a group of the level before."""
    sizes = np.bincount(labels)
    real = sizes >= 2
    if episode_vectors is not None and len(sizes):
        real &= sizes < np.bincount(episode_vectors)[_parents(labels, episode_vectors)]
    return real
