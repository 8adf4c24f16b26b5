"""The graph channel by the strategies of recall: names and episodes as one subgraph, walked from the question's names.

Personalised PageRank, the default, is in `graphmem.rag.walk`: it knows the text scores, too.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphmem.models import EdgeType, Subgraph
from graphmem.rag.names import Names
from graphmem.rag.options import ExpansionConfig
from graphmem.rag.walk import normalised
from graphmem.recall import astar, bfs, spreading
from graphmem.recall.options import SpreadingOptions

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Node = tuple[bool, int]
"""(whether it is an episode, its position or the number of the name)."""


def stepwise(
    expansion: ExpansionConfig,
    seeds: Sequence[int],
    names: Names,
    candidates: Ints,
    question: NDArray[np.float32] | None,
    limits: SpreadingOptions,
) -> Floats:
    """Return what bfs, spreading or astar give each of c candidates, normalised; shape (c,).

    An episode has the score of the best edge that leads to it; a seed counts the less, the more episodes have it.

    Parameters
    ----------
    expansion
        Strategy and steps.
    seeds
        Numbers of the names that the question names; at least one.
    names
        The graph.
    candidates
        Positions of the episodes, ascending, shape (c,).
    question
        Its vector, by which astar prefers names; None where there is no model.
    limits
        Of spreading.
    """
    near = _Neighbourhood.of(seeds, names, frozenset(candidates.tolist()), expansion.hops)
    graph = near.subgraph(names)
    rarity = np.array([1.0 / max(1, len(names.episodes(number))) for number in seeds])
    scores = np.zeros(len(near.nodes))
    scores[[near.place[False, number] for number in seeds]] = rarity / rarity.max()
    match expansion.strategy:
        case "bfs":
            found = bfs.walk(graph, scores)
        case "spreading":
            deadline = time.monotonic() + limits.time_limit
            found = spreading.walk(graph, scores, limits, now=0.0, decay_rate=0.0, deadline=deadline)
        case "astar":
            found = astar.walk(graph, scores, _cosines(near.nodes, names, question))
        case "ppr":
            raise AssertionError("graphmem.rag.walk has it")
    total = np.where(found.near >= 0, np.prod(list(found.parts.values()), axis=0), 0.0)
    best = np.zeros(len(near.nodes))
    np.maximum.at(best, graph.source, total)
    np.maximum.at(best, graph.target, total)
    reached = {position: best[i] for i, (is_episode, position) in enumerate(near.nodes) if is_episode}
    return normalised(np.array([reached.get(position, 0.0) for position in candidates.tolist()]))


@dataclass(slots=True)
class _Neighbourhood:
    """What a few steps from the seeds reach: nodes by depth, and the edges between them with their weights."""

    nodes: list[Node] = field(default_factory=list[Node])
    place: dict[Node, int] = field(default_factory=dict[Node, int])
    depth: list[int] = field(default_factory=list[int])
    edges: dict[tuple[int, int], float] = field(default_factory=dict[tuple[int, int], float])

    @classmethod
    def of(cls, seeds: Sequence[int], names: Names, candidates: frozenset[int], hops: int) -> _Neighbourhood:
        near = cls()
        frontier = [near.add((False, number), 0) for number in dict.fromkeys(seeds)]
        for depth in range(1, hops + 1):
            reached: list[int] = []
            for at in frontier:
                for node, weight in _neighbours(near.nodes[at], names, candidates):
                    fresh = node not in near.place
                    other = near.add(node, depth)
                    near.edges.setdefault((min(at, other), max(at, other)), weight)
                    if fresh:
                        reached.append(other)
            frontier = reached
        return near

    def add(self, node: Node, depth: int) -> int:
        if node not in self.place:
            self.place[node] = len(self.nodes)
            self.nodes.append(node)
            self.depth.append(depth)
        return self.place[node]

    def subgraph(self, names: Names) -> Subgraph:
        pairs = np.array(list(self.edges), dtype=np.int64).reshape(-1, 2)
        m = len(pairs)
        return Subgraph(
            node_ids=[f"{'episode' if is_episode else 'name'} {number}" for is_episode, number in self.nodes],
            names=["" if is_episode else names.texts[number] for is_episode, number in self.nodes],
            entity_types=[""] * len(self.nodes),
            depth=np.array(self.depth, dtype=np.int64),
            edge_ids=[str(i) for i in range(m)],
            relations=[""] * m,
            edge_types=[EdgeType.SEMANTIC] * m,
            facts=[""] * m,
            source=pairs[:, 0],
            target=pairs[:, 1],
            confidence=np.array(list(self.edges.values()), dtype=np.float64),
            retrieval_count=np.zeros(m),
            valid_from=np.zeros(m),
        )


def _neighbours(node: Node, names: Names, candidates: frozenset[int]) -> list[tuple[Node, float]]:
    is_episode, number = node
    if is_episode:
        return [((False, name), 1.0) for name in names.of_episode(number)]
    episodes = [((True, position), 1.0) for position in names.episodes(number) if position in candidates]
    return episodes + [((False, other), min(1.0, cosine)) for other, cosine in names.alike.of(number).items()]


def _cosines(nodes: Sequence[Node], names: Names, question: NDArray[np.float32] | None) -> Floats | None:
    if question is None:
        return None
    found = np.full(len(nodes), np.nan)
    for i, (is_episode, number) in enumerate(nodes):
        if not is_episode and (vector := names.vector(number)) is not None:
            found[i] = float(vector @ question)
    return found
