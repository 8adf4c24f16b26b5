"""The graph channel: a walk from what a question names, or a strategy of recall (docs/concepts/search.md).

Personalised PageRank, the default, is in `graphmem.search.graph_channel`: it knows the text scores, too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from graphmem.embed import TokenVectors
from graphmem.index.codec import unit
from graphmem.models import EdgeType, Subgraph
from graphmem.recall import scoring, strategies
from graphmem.recall.options import SpreadingOptions
from graphmem.search.names import Names
from graphmem.search.results import ExpansionConfig
from graphmem.text.words import terms

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]
Ints = NDArray[np.int64]

DAMPING, ROUNDS = 0.7, 4
SHARPNESS = 8
"""Exponent of the text score in the restart: only the best episodes pull."""

SEED_SHARE = 0.5
"""Share of the restart that the names of the question have; the text has the rest."""

BRIDGE_FROM = 5
"""Episodes that the bridge starts from."""

NAME_PULL = 0.5
"""Weight of the vector of a name against that of what is left of the question."""

_WORD = re.compile(r"[^\W_]+")


def normalized(values: NDArray[np.floating]) -> Floats:
    """Return values brought to [0, 1]; a constant becomes 0: a channel without ground is silent."""
    values = np.asarray(values, dtype=np.float64)
    low, high = (values.min(), values.max()) if len(values) else (0.0, 0.0)
    return (values - low) / (high - low) if high > low else np.zeros(len(values))


def best_first(scores: NDArray[np.floating], limit: int) -> Ints:
    """Return the positions of the best scores, the best first and of equal ones the first; at most `limit`."""
    some = np.arange(len(scores))
    if limit < len(scores):
        some = np.flatnonzero(scores >= np.partition(scores, -limit)[-limit])
    return some[np.argsort(-scores[some], kind="stable")][:limit]


def walk(text: Floats, seeds: Sequence[int], names: Names, candidates: Ints) -> Floats:
    """Return a personalised PageRank over the candidates and their names, normalized; shape (c,).

    The walker goes from names to episodes, from episodes to names, and from names to names alike; it starts anew at
    the seeds, each divided by how many episodes have it, and at the episodes with the best text score.

    Parameters
    ----------
    text
        Score of each candidate, shape (c,).
    seeds
        Numbers of the names that the question names; at least one.
    names
        The graph.
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
    rank = restart
    for _ in range(ROUNDS):
        rank = DAMPING * np.bincount(target, flow * rank[source], len(out)) + (1 - DAMPING) * restart
    return normalized(rank[m:])


def _pairs(nodes: Ints, names: Names) -> tuple[Ints, Ints, Floats]:
    """Return the places of names alike among the nodes, ascending numbers, each pair both ways, with their cosines."""
    a, wanted, cosines = names.alike.among(nodes)
    b = np.minimum(np.searchsorted(nodes, wanted), len(nodes) - 1)
    inside = nodes[b] == wanted
    return a[inside], b[inside], cosines[inside].astype(np.float64)


def _restart(text: Floats, seeds: Sequence[int], names: Names, nodes: Ints) -> Floats:
    restart = np.zeros(len(nodes) + len(text))
    sharp = normalized(text) ** SHARPNESS
    restart[len(nodes) :] = (1 - SEED_SHARE) * sharp / max(sharp.sum(), 1e-12)
    weights = np.array([1 / max(1, len(names.episodes(seed))) for seed in seeds])
    np.add.at(restart, np.searchsorted(nodes, np.array(seeds)), SEED_SHARE * weights / weights.sum())
    return restart


@dataclass(frozen=True, slots=True)
class Crossing:
    """How the bridge came to an episode: from which one, over which name."""

    origin: int
    name: int


def bridge(
    question: str,
    tokens: TokenVectors,
    ranked: Floats,
    named: frozenset[str],
    names: Names,
    episode_vectors: Vectors,
    has_term: Callable[[int, str], bool],
) -> tuple[Floats, dict[int, Crossing]]:
    """Return what the names of the best episodes lead to, matched with what those leave open of the question.

    Parameters
    ----------
    question, tokens
        As the model read it, and its pieces and their vectors.
    ranked
        Score of the walk, shape (n,).
    named
        Names in the question: those are no news.
    names, episode_vectors
        The graph, and the vectors of the n episodes.
    has_term
        Tells whether the episode at a position has a term.

    Returns
    -------
    scores, bridge_hops
        Shape (n,), and for each episode reached the best way there.
    """
    words = [(found.start(), found.end(), terms(found[0])) for found in _WORD.finditer(question)]
    best = np.zeros(len(ranked))
    ways: dict[int, Crossing] = {}
    top = best_first(ranked, BRIDGE_FROM)
    for origin in top[ranked[top] > 0].tolist():
        open_words = [
            (begin, end) for begin, end, said in words if said and not all(has_term(origin, term) for term in said)
        ]
        rest = _left_over(tokens, open_words)
        for number in names.of_episode(origin):
            if names.texts[number] in named:
                continue
            positions, weights = _led_to(number, names)
            vector = names.vector(number)
            aim = unit(rest + NAME_PULL * vector) if vector is not None else rest
            scores = ranked[origin] * weights * np.maximum(0, episode_vectors[positions] @ aim)
            better = scores > best[positions]
            for position, score in zip(positions[better].tolist(), scores[better].tolist(), strict=True):
                if position != origin and score > best[position]:
                    best[position] = score
                    ways[position] = Crossing(origin, number)
    return best, ways


def _led_to(number: int, names: Names) -> tuple[Ints, Floats]:
    """Return the episodes that a name leads to with their weights: those that have it, and those it is the title of."""
    reach = names.reach(number)
    titled = names.titled.get(names.texts[number], [])
    positions = np.array([*reach, *titled], dtype=np.int64)
    weights = np.array(list(reach.values())) * names.rarity(len(reach)) ** 2
    return positions, np.concatenate([weights, np.full(len(titled), max(1, len(titled)) ** -0.5)])


def _left_over(tokens: TokenVectors, words: Sequence[tuple[int, int]]) -> Vectors:
    """Return the direction of the pieces inside of some words, given by their characters; of all if there is none."""
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
    candidates: Ints,
    question: NDArray[np.float32] | None,
    limits: SpreadingOptions,
) -> Floats:
    """Return what bfs, spreading or astar give each of c candidates, normalized; shape (c,).

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
    near = _Neighborhood.of(seeds, names, frozenset(candidates.tolist()), expansion.hops)
    graph = near.subgraph(names)
    rarity = np.array([1.0 / max(1, len(names.episodes(number))) for number in seeds])
    scores = np.zeros(len(near.nodes))
    scores[[near.place[False, number] for number in seeds]] = rarity / rarity.max()
    match expansion.strategy:
        case "bfs":
            found = scoring.walk_breadth_first(graph, scores)
        case "spreading":
            deadline = time.monotonic() + limits.time_limit
            found = strategies.spread_activation(graph, scores, limits, now=0.0, decay_rate=0.0, deadline=deadline)
        case "astar":
            found = strategies.walk_cheapest_paths(graph, scores, _cosines(near.nodes, names, question))
        case "ppr":
            raise AssertionError("graphmem.search.graph_channel has it")
    total = np.where(found.near >= 0, np.prod(list(found.parts.values()), axis=0), 0.0)
    best = np.zeros(len(near.nodes))
    np.maximum.at(best, graph.source, total)
    np.maximum.at(best, graph.target, total)
    reached = {position: best[i] for i, (is_episode, position) in enumerate(near.nodes) if is_episode}
    return normalized(np.array([reached.get(position, 0.0) for position in candidates.tolist()]))


@dataclass(slots=True)
class _Neighborhood:
    """What a few steps from the seeds reach: nodes by depth, and the edges between them with their weights."""

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
        )


def _neighbors(node: Node, names: Names, candidates: frozenset[int]) -> list[tuple[Node, float]]:
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
