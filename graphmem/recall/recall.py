"""Facts for a question: seeds, expansion, score (spec: recall)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from graphmem.models import AsOf, Edge, EdgeKey, EdgeType, Entity, ExpandLimits, Model, Scope, Subgraph
from graphmem.ontology import Ontology
from graphmem.protocols import GraphBackend
from graphmem.recall import score
from graphmem.recall.bfs import Reached, nearer_end, reach
from graphmem.recall.seeds import score_seeds
from graphmem.results import Fact, RecallResult, ScoreParts, Seed
from graphmem.text.words import query_phrases, query_words

_CANDIDATES = 50  # entities by words, and as many by alias, that are scored as seeds


class RecallOptions(Model):
    """How a recall is made; see `graphmem.settings.Settings` for meanings and defaults."""

    limit: Annotated[int, Field(ge=1, le=10_000)]
    max_hops: Annotated[int, Field(ge=0, le=6)]
    max_seeds: int
    max_frontier: int
    seed_structural_weight: float
    fact_text_weight: float
    temporal_decay_rate: Annotated[float, Field(ge=0.0, le=10.0, allow_inf_nan=False)]
    edge_types: tuple[EdgeType, ...] = ()
    as_of: AsOf | None = None


def find_seeds(
    backend: GraphBackend, scopes: Sequence[Scope], query: str, *, structural_weight: float, limit: int
) -> list[Seed]:
    """Find the entities that a question is about, best first; one round trip."""
    words, phrases = query_words(query), query_phrases(query)
    if not words and not phrases:
        return []
    hits = backend.search_entities(scopes, words=words, phrases=phrases, limit=_CANDIDATES)
    return score_seeds(hits, words, structural_weight=structural_weight, limit=limit)


def recall(
    backend: GraphBackend,
    scopes: Sequence[Scope],
    query: str,
    options: RecallOptions,
    ontology: Ontology,
    now: datetime,
) -> RecallResult:
    """Return the facts around what a question names, best first; at most ``max_hops + 3`` round trips.

    Each fact scores ``seed × 1 / (1 + hop) × effective confidence × edge type weight × recency × relevance``;
    of facts with the same (source, relation, target, edge type) the best stays.
    """
    seeds = find_seeds(
        backend, scopes, query, structural_weight=options.seed_structural_weight, limit=options.max_seeds
    )
    if not seeds:
        return RecallResult(query=query, facts=(), seeds=(), as_of=options.as_of)
    graph = backend.expand(
        scopes,
        [seed.entity_id for seed in seeds],
        hops=options.max_hops,
        edge_types=options.edge_types,
        as_of=options.as_of,
        limits=ExpandLimits(max_frontier=options.max_frontier),
    )
    scored = _score(graph, seeds, query, options, ontology, now)
    best = _best(graph, scored.total, options.limit)
    edges = backend.get_edges(scopes, [graph.edge_ids[i] for i in best])
    facts = tuple(scored.fact(i, edges[graph.edge_ids[i]]) for i in best if graph.edge_ids[i] in edges)
    return RecallResult(query=query, facts=facts, seeds=tuple(seeds), as_of=options.as_of)


@dataclass(frozen=True, slots=True)
class _Scored:
    """Facts of a subgraph with their scores; arrays of shape (m,)."""

    graph: Subgraph
    reached: Reached
    near: NDArray[np.int64]
    hop: NDArray[np.int64]
    parts: dict[str, score.Floats]
    total: score.Floats

    def fact(self, i: int, edge: Edge) -> Fact:
        names = self.graph.names
        path = tuple(names[node] for node in self.reached.path(int(self.near[i])))
        return to_fact(
            edge,
            names[int(self.graph.source[i])],
            names[int(self.graph.target[i])],
            score=float(self.total[i]),
            hop=int(self.hop[i]),
            seed=path[0],
            path=path,
            parts=ScoreParts(**{name: float(values[i]) for name, values in self.parts.items()}),
        )


def _score(
    graph: Subgraph, seeds: Sequence[Seed], query: str, options: RecallOptions, ontology: Ontology, now: datetime
) -> _Scored:
    by_id = {seed.entity_id: seed.score for seed in seeds}
    seed_scores = np.array([by_id.get(i, 0.0) for i in graph.node_ids])
    reached = reach(graph, seed_scores)
    near = nearer_end(graph, reached, seed_scores)
    hop = graph.depth[near]
    parts = {
        "seed": seed_scores[reached.seed[near]],
        "proximity": score.proximity(hop),
        "confidence": score.effective_confidence(graph.confidence, graph.retrieval_count),
        "edge_type": score.flow_weight(graph.edge_types),
        "recency": score.recency(graph.valid_from, now.timestamp(), options.temporal_decay_rate),
    }
    if options.fact_text_weight:
        texts = [
            f"{relation} {ontology.words(relation)} {fact}"
            for relation, fact in zip(graph.relations, graph.facts, strict=True)
        ]
        parts["relevance"] = 1.0 + options.fact_text_weight * score.shared_words(query_words(query), texts)
    total = np.ones(len(graph.edge_ids))
    for values in parts.values():
        total = total * values
    return _Scored(graph, reached, near, hop, parts, total)


def _best(graph: Subgraph, total: score.Floats, limit: int) -> list[int]:
    """Return the positions of the best facts, the latest valid_from first among equals, each key once."""
    order: NDArray[np.int64] = np.lexsort(
        (np.array(graph.edge_ids), -graph.valid_from, -total)
    )  # the last key counts most
    best: dict[EdgeKey, int] = {}
    for position in order:
        i = int(position)
        source, target = graph.node_ids[int(graph.source[i])], graph.node_ids[int(graph.target[i])]
        best.setdefault((source, target, graph.relations[i], graph.edge_types[i]), i)
        if len(best) == limit:
            break
    return list(best.values())


def to_fact(edge: Edge, source: str, target: str, **found: Any) -> Fact:
    """Return an edge as callers see it, with the names of its ends and how it was found."""
    return Fact(
        id=edge.id,
        source=source,
        relation=edge.relation,
        target=target,
        source_id=edge.source_id,
        target_id=edge.target_id,
        fact=edge.fact,
        edge_type=edge.edge_type,
        confidence=edge.confidence,
        valid_from=edge.valid_from,
        valid_to=edge.valid_to,
        recorded_at=edge.recorded_at,
        expired_at=edge.expired_at,
        superseded_by=edge.superseded_by,
        episode_ids=edge.episode_ids,
        retrieval_count=edge.retrieval_count,
        properties=edge.properties,
        **found,
    )


def to_facts(backend: GraphBackend, scopes: Sequence[Scope], edges: Sequence[Edge]) -> tuple[Fact, ...]:
    """Return edges with the names of their ends; one round trip."""
    ids = dict.fromkeys(i for e in edges for i in (e.source_id, e.target_id))
    names: dict[str, Entity] = backend.get_entities(scopes, list(ids)) if ids else {}
    return tuple(to_fact(e, names[e.source_id].name, names[e.target_id].name) for e in edges)
