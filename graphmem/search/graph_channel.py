"""The graph channel: graph walks from the names in a question (docs/concepts/search.md).

The default is a personalized PageRank that also restarts at episodes with a high text score; the other walks are
strategies of recall.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from graphmem.embed import TokenVectors
from graphmem.index.stored_vectors import unit
from graphmem.models import EdgeType, Subgraph
from graphmem.models.arrays import Float32s, Float64s, Int64s, best_first, normalized
from graphmem.recall import strategies
from graphmem.recall.options import SpreadingOptions
from graphmem.recall.pagerank import iterate
from graphmem.recall.walks import walk_breadth_first
from graphmem.search.names import Names
from graphmem.search.results import ExpansionConfig
from graphmem.text.normalize import WORD
from graphmem.text.terms import terms

ROUNDS = 4
SHARPNESS = 8
"""Exponent of the text score in the restart distribution; concentrates it on the best episodes."""

SEED_SHARE = 0.5
"""Share of the restart distribution for the names in the question; the rest is for the text score."""

BRIDGE_FROM = 5
"""Number of episodes that the bridge starts from."""

NAME_PULL = 0.5
"""Weight of a name's vector relative to that of the uncovered part of the question."""


def walk(text: Float64s, seeds: Sequence[int], names: Names, candidates: Int64s) -> Float64s:
    """Return a personalized PageRank over the candidates and their names, normalized; shape (c,).

    Edges connect names with their episodes and with synonyms. The walk restarts at the seeds, each weighted by
    1 / its number of episodes, and at the episodes with the best text score.

    Parameters
    ----------
    text
        Score of each candidate, shape (c,).
    seeds
        Numbers of the names in the question; at least one.
    names
        The name graph.
    candidates
        Positions of the episodes, shape (c,).
    """
    of_each = [names.of_episode(position) for position in candidates.tolist()]
    counts = [len(found) for found in of_each]
    numbers = np.fromiter(chain.from_iterable(of_each), dtype=np.int64, count=sum(counts))
    nodes = np.union1d(np.array(seeds, dtype=np.int64), numbers)
    m = len(nodes)
    episode = np.repeat(np.arange(len(candidates)) + m, counts)
    name = np.searchsorted(nodes, numbers)
    a, b, alike = _pairs(nodes, names)
    source = np.concatenate([name, episode, a])
    target = np.concatenate([episode, name, b])
    out = np.maximum(np.concatenate([names.degrees(nodes), counts]), 1e-9)
    flow = np.concatenate([np.ones(2 * len(name)), alike]) / out[source]
    restart = _restart(text, seeds, names, nodes)
    return normalized(iterate(source, target, flow, restart, ROUNDS)[m:])


def _pairs(nodes: Int64s, names: Names) -> tuple[Int64s, Int64s, Float64s]:
    """Return the pairs of synonyms among the nodes (ascending name numbers) in both directions, with their cosines."""
    a, wanted, cosines = names.synonyms.among(nodes)
    b = np.minimum(np.searchsorted(nodes, wanted), len(nodes) - 1)
    inside = nodes[b] == wanted
    return a[inside], b[inside], cosines[inside].astype(np.float64)


def _restart(text: Float64s, seeds: Sequence[int], names: Names, nodes: Int64s) -> Float64s:
    restart = np.zeros(len(nodes) + len(text))
    sharp = normalized(text) ** SHARPNESS
    restart[len(nodes) :] = (1 - SEED_SHARE) * sharp / max(sharp.sum(), 1e-12)
    weights = np.array([1 / max(1, len(names.episodes(seed))) for seed in seeds])
    np.add.at(restart, np.searchsorted(nodes, np.array(seeds)), SEED_SHARE * weights / weights.sum())
    return restart


@dataclass(frozen=True, slots=True)
class Crossing:
    """A bridge to an episode: the episode of origin and the connecting name."""

    origin: int
    name: int


def bridge(
    question: str,
    tokens: TokenVectors,
    ranked: Float64s,
    named: frozenset[str],
    names: Names,
    episode_vectors: Float32s,
    has_term: Callable[[int, str], bool],
) -> tuple[Float64s, dict[int, Crossing]]:
    """Score the episodes that share a name with the best episodes against the uncovered part of the question.

    Parameters
    ----------
    question, tokens
        The question as encoded by the model, with its tokens and their vectors.
    ranked
        Score of the walk, shape (n,).
    named
        Names in the question; they are not followed.
    names, episode_vectors
        The name graph, and the vectors of the n episodes.
    has_term
        Returns whether the episode at a position has a term.

    Returns
    -------
    scores, bridge_hops
        Shape (n,), and the best bridge to each episode reached.
    """
    words = [(found.start(), found.end(), terms(found[0])) for found in WORD.finditer(question)]
    best = np.zeros(len(ranked))
    crossings: dict[int, Crossing] = {}
    top = best_first(ranked, BRIDGE_FROM)
    for origin in top[ranked[top] > 0].tolist():
        uncovered = [
            (begin, end) for begin, end, found in words if found and not all(has_term(origin, term) for term in found)
        ]
        rest = _direction(tokens, uncovered)
        for number in names.of_episode(origin):
            if names.texts[number] in named:
                continue
            positions, weights = _episodes_of(number, names)
            vector = names.vector(number)
            target = unit(rest + NAME_PULL * vector) if vector is not None else rest
            scores = ranked[origin] * weights * np.maximum(0, episode_vectors[positions] @ target)
            better = scores > best[positions]
            for position, score in zip(positions[better].tolist(), scores[better].tolist(), strict=True):
                if position != origin and score > best[position]:
                    best[position] = score
                    crossings[position] = Crossing(origin, number)
    return best, crossings


def _episodes_of(number: int, names: Names) -> tuple[Int64s, Float64s]:
    """Return the episodes that have a name or a synonym, and those titled by it, with their weights."""
    reach = names.reach(number)
    titled = names.titled.get(names.texts[number], [])
    positions = np.array([*reach, *titled], dtype=np.int64)
    weights = np.array(list(reach.values())) * names.rarity(len(reach)) ** 2
    return positions, np.concatenate([weights, np.full(len(titled), max(1, len(titled)) ** -0.5)])


def _direction(tokens: TokenVectors, words: Sequence[tuple[int, int]]) -> Float32s:
    """Return the unit vector of the tokens within words, given as character ranges; the pooled vector if none is."""
    left = [
        i for i, (begin, end) in enumerate(tokens.offsets.tolist()) if any(b <= begin and end <= e for b, e in words)
    ]
    return unit(tokens.vectors[left].sum(0)) if left else tokens.pooled


Node = tuple[bool, int]
"""(whether it is an episode, its position or the number of the name)."""


def stepwise(
    expansion: ExpansionConfig,
    seeds: Sequence[int],
    names: Names,
    candidates: Int64s,
    question: Float32s | None,
    limits: SpreadingOptions,
) -> Float64s:
    """Return the score of each of c candidates by bfs, spreading or astar, normalized; shape (c,).

    The score of an episode is that of its best edge; the score of a seed is inverse to its number of episodes.

    Parameters
    ----------
    expansion
        Strategy and number of hops.
    seeds
        Numbers of the names in the question; at least one.
    names
        The name graph.
    candidates
        Positions of the episodes, ascending, shape (c,).
    question
        Vector of the question, used by astar; None without a model.
    limits
        Limits of spreading activation.
    """
    near = _Neighborhood.of(seeds, names, frozenset(candidates.tolist()), expansion.hops)
    graph = near.subgraph(names)
    rarity = np.array([1.0 / max(1, len(names.episodes(number))) for number in seeds])
    scores = np.zeros(len(near.nodes))
    scores[[near.place[False, number] for number in seeds]] = rarity / rarity.max()
    match expansion.strategy:
        case "bfs":
            found = walk_breadth_first(graph, scores)
        case "spreading":
            deadline = time.monotonic() + limits.time_limit
            found = strategies.spread_activation(graph, scores, limits, now=0.0, decay_rate=0.0, deadline=deadline)
        case "astar":
            found = strategies.walk_cheapest_paths(graph, scores, _cosines(near.nodes, names, question))
        case "ppr":
            raise AssertionError("ppr is handled by walk()")
    total = np.where(found.near >= 0, np.prod(list(found.parts.values()), axis=0), 0.0)
    best = np.zeros(len(near.nodes))
    np.maximum.at(best, graph.source, total)
    np.maximum.at(best, graph.target, total)
    reached = {position: best[i] for i, (is_episode, position) in enumerate(near.nodes) if is_episode}
    return normalized(np.array([reached.get(position, 0.0) for position in candidates.tolist()]))


@dataclass(slots=True)
class _Neighborhood:
    """The neighborhood of the seeds: nodes with their depths, and weighted edges between them."""

    nodes: list[Node] = field(default_factory=list[Node])
    place: dict[Node, int] = field(default_factory=dict[Node, int])
    depth: list[int] = field(default_factory=list[int])
    edges: dict[tuple[int, int], float] = field(default_factory=dict[tuple[int, int], float])

    @classmethod
    def of(cls, seeds: Sequence[int], names: Names, candidates: frozenset[int], hops: int) -> _Neighborhood:
        near = cls()
        frontier = [near.add((False, number), 0) for number in dict.fromkeys(seeds)]
        for depth in range(1, hops + 1):
            reached: list[int] = []
            for at in frontier:
                for node, weight in _neighbors(near.nodes[at], names, candidates):
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
            inferred=np.zeros(m, dtype=np.bool_),
        )


def _neighbors(node: Node, names: Names, candidates: frozenset[int]) -> list[tuple[Node, float]]:
    is_episode, number = node
    if is_episode:
        return [((False, name), 1.0) for name in names.of_episode(number)]
    episodes = [((True, position), 1.0) for position in names.episodes(number) if position in candidates]
    return episodes + [((False, other), min(1.0, cosine)) for other, cosine in names.synonyms.of(number).items()]


def _cosines(nodes: Sequence[Node], names: Names, question: Float32s | None) -> Float64s | None:
    if question is None:
        return None
    found = np.full(len(nodes), np.nan)
    for i, (is_episode, number) in enumerate(nodes):
        if not is_episode and (vector := names.vector(number)) is not None:
            found[i] = float(vector @ question)
    return found
