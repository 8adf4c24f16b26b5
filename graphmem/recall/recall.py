"""Fact recall for a question: seeds, expansion, strategy, scoring (spec: recall)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from graphmem.models import (
    Edge,
    EdgeKey,
    EdgeType,
    Entity,
    EpisodeQuery,
    ExpandLimits,
    Scope,
    Subgraph,
)
from graphmem.ontology import Ontology
from graphmem.protocols import GraphBackend
from graphmem.recall import pagerank, scoring, strategies
from graphmem.recall.embeddings import EntityEmbeddings, entity_vectors, query_cosines
from graphmem.recall.options import RecallOptions
from graphmem.recall.past import with_past
from graphmem.recall.provenance import stated_in, with_facts_of_hubs, with_only
from graphmem.recall.routing import HeuristicRouter, plan
from graphmem.recall.scoring import Floats, Positions, Walk
from graphmem.recall.seeds import find_seeds
from graphmem.results import Fact, RecallResult, ScoreParts, Seed, Strategy
from graphmem.text.words import query_words
from graphmem.trust import LEVELS, Trust, best_trust, is_trusted, trust_of

_TRUST_POOL = 4  # facts that are looked at for one of the trust that is asked for
_SOURCES = 20  # newest sources of a fact whose trust is looked at
_MENTIONS = 10_000  # maximum mentions of a subgraph's entities in a walk, oldest episodes first


def recall(
    backend: GraphBackend,
    scopes: Sequence[Scope],
    query: str,
    options: RecallOptions,
    ontology: Ontology,
    now: datetime,
    meaning: EntityEmbeddings | None = None,
    observer: Callable[[Subgraph, Walk, Floats], None] | None = None,
) -> RecallResult:
    """Return the facts around the entities named in a question, best first; at most ``hops + 9`` round trips.

    The score of a fact is ``seed × proximity × reach × effective confidence × edge type weight × recency × relevance ×
    past``; the strategy defines the first three. Facts about a seed that are over without a successor are included.
    Facts with the same (source, relation, target, edge type) are deduplicated to the best one. With filters, only facts
    that a matching episode states are walked.

    Parameters
    ----------
    backend, scopes, query, options, ontology
        The store, the scopes to search, the question, and the options and ontology to apply.
    now
        Reference time of ages and relative dates.
    meaning
        Optional vectors, for seeds without a word match and for the strategies that use them (astar, ppr).
    observer
        Called with the subgraph, the walk and the scores of the edges, if there are seeds.
    """
    seeds = find_seeds(
        backend,
        scopes,
        query,
        structural_weight=options.seed_structural_weight,
        limit=options.max_seeds,
        community_cap=options.seed_community_cap,
        as_of=options.as_of,
        meaning=meaning,
        mode=options.seed_mode,
    )
    strategy, edge_types = _planned(query, seeds, options, now)
    if not seeds:
        return RecallResult(query=query, facts=(), seeds=(), as_of=options.as_of, strategy=strategy)
    deadline = time.monotonic() + options.spreading.time_limit
    graph = _expand(backend, scopes, seeds, options, strategy, edge_types)
    if not graph.edge_ids and edge_types != options.edge_types:
        graph = _expand(
            backend, scopes, seeds, options, strategy, ()
        )  # no edges of the routed types: expand over all types
    ids, limits = [seed.entity_id for seed in seeds], ExpandLimits(max_frontier=options.max_frontier)
    if options.filters is not None and options.hops(strategy):
        graph = with_facts_of_hubs(backend, scopes, graph, ids, options.edge_types, options.as_of, limits)
    past = np.ones(len(graph.edge_ids))
    if options.as_of is None and options.hops(strategy):
        graph, past = with_past(backend, scopes, graph, ids, options.edge_types, limits)
    if options.filters is not None:
        kept = stated_in(backend, scopes, graph, options.filters)
        graph, past = with_only(graph, kept), past[kept]
    by_id = {seed.entity_id: seed.score for seed in seeds}
    seed_scores = np.array([by_id.get(i, 0.0) for i in graph.node_ids])
    match strategy:
        case "bfs":
            walk = scoring.walk_breadth_first(graph, seed_scores)
        case "spreading":
            walk = strategies.spread_activation(
                graph,
                seed_scores,
                options.spreading,
                now=now.timestamp(),
                decay_rate=options.temporal_decay_rate,
                deadline=deadline,
            )
        case "ppr":
            mentions = _mentions(backend, scopes, graph.node_ids, options)
            walk = pagerank.walk(graph, seed_scores, mentions, entity_vectors(meaning, scopes, graph.node_ids))
        case "astar":
            cosines = query_cosines(meaning, scopes, query, graph.node_ids)
            walk = strategies.walk_cheapest_paths(graph, seed_scores, cosines)
    scored = _score(graph, walk, query, options, ontology, now, past)
    if observer is not None:
        observer(graph, walk, scored.total)
    best = _best(graph, scored, options.limit if options.min_trust == LEVELS[0] else _TRUST_POOL * options.limit)
    edges = backend.get_edges(scopes, [graph.edge_ids[i] for i in best])
    if options.as_of is not None:
        edges = {i: edge.as_known(options.as_of.known) for i, edge in edges.items()}
    facts = tuple(scored.fact(i, edges[graph.edge_ids[i]]) for i in best if graph.edge_ids[i] in edges)
    facts = with_trust(backend, scopes, facts, options.min_trust)[: options.limit]
    return RecallResult(
        query=query,
        facts=facts,
        seeds=tuple(seeds),
        as_of=options.as_of,
        strategy=strategy,
        timed_out=walk.timed_out,
    )


def _expand(
    backend: GraphBackend,
    scopes: Sequence[Scope],
    seeds: Sequence[Seed],
    options: RecallOptions,
    strategy: Strategy,
    edge_types: tuple[EdgeType, ...],
) -> Subgraph:
    return backend.expand(
        scopes,
        [seed.entity_id for seed in seeds],
        hops=options.hops(strategy),
        edge_types=edge_types,
        as_of=options.as_of,
        limits=ExpandLimits(max_frontier=options.max_frontier),
    )


def _planned(
    query: str, seeds: Sequence[Seed], options: RecallOptions, now: datetime
) -> tuple[Strategy, tuple[EdgeType, ...]]:
    """Return the strategy and the edge types of the options; with "auto", those that the router chooses."""
    if options.strategy != "auto":
        return options.strategy, options.edge_types
    strategy, edge_types = plan(query, HeuristicRouter().route(query, [seed.name for seed in seeds], now=now))
    return strategy, options.edge_types or edge_types


def _mentions(
    backend: GraphBackend, scopes: Sequence[Scope], entity_ids: Sequence[str], options: RecallOptions
) -> list[tuple[str, str]]:
    """Return (entity id, episode id) of each mention in an episode to read; one or two round trips."""
    mentions = backend.find_mentions(scopes, entity_ids=entity_ids, limit=_MENTIONS)
    if options.as_of is None and options.filters is None:
        return [(m.entity_id, m.episode_id) for m in mentions]
    ids = tuple(dict.fromkeys(m.episode_id for m in mentions))
    query = EpisodeQuery(ids=ids, as_of=options.as_of, filters=options.filters)
    seen = set(backend.find_episode_ids(scopes, query))
    return [(m.entity_id, m.episode_id) for m in mentions if m.episode_id in seen]


@dataclass(frozen=True, slots=True)
class _Scored:
    """Facts of a subgraph with their scores; arrays of shape (m,)."""

    graph: Subgraph
    walk: Walk
    parts: dict[str, Floats]
    total: Floats

    def fact(self, i: int, edge: Edge) -> Fact:
        names = self.graph.names
        path = tuple(names[node] for node in self.walk.reached.path(int(self.walk.near[i])))
        return to_fact(
            edge,
            names[int(self.graph.source[i])],
            names[int(self.graph.target[i])],
            score=float(self.total[i]),
            hop=len(path) - 1,
            seed=path[0],
            path=path,
            parts=ScoreParts(**{name: float(values[i]) for name, values in self.parts.items()}),
        )


def _score(
    graph: Subgraph, walk: Walk, query: str, options: RecallOptions, ontology: Ontology, now: datetime, past: Floats
) -> _Scored:
    parts = {
        **walk.parts,
        "past": past,
        "confidence": scoring.effective_confidence(graph.confidence, graph.retrieval_count),
        "edge_type": scoring.flow_weight(graph.edge_types),
        "recency": scoring.recency(graph.valid_from, now.timestamp(), options.temporal_decay_rate),
    }
    if options.fact_text_weight:
        texts = [
            f"{relation} {ontology.words(relation)} {fact}"
            for relation, fact in zip(graph.relations, graph.facts, strict=True)
        ]
        parts["relevance"] = 1.0 + options.fact_text_weight * scoring.shared_words(query_words(query), texts)
    total = np.ones(len(graph.edge_ids))
    for values in parts.values():
        total = total * values
    return _Scored(graph, walk, parts, total)


def _best(graph: Subgraph, scored: _Scored, limit: int) -> list[int]:
    """Return the positions of the best facts, each edge key once; ties are ordered by latest valid_from."""
    found = np.flatnonzero(scored.walk.near >= 0)
    ids = np.array(graph.edge_ids)[found]
    order: Positions = found[
        np.lexsort((ids, -graph.valid_from[found], -scored.total[found]))
    ]  # the last key is the primary one
    best: dict[EdgeKey, int] = {}
    for position in order:
        i = int(position)
        source, target = graph.node_ids[int(graph.source[i])], graph.node_ids[int(graph.target[i])]
        best.setdefault((source, target, graph.relations[i], graph.edge_types[i]), i)
        if len(best) == limit:
            break
    return list(best.values())


def to_fact(edge: Edge, source: str, target: str, **found: Any) -> Fact:
    """Return an edge as a `Fact` with the names of its ends; `found` holds scores and path."""
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
        certainty=edge.certainty,
        kind=edge.kind,
        valid_from_assumed=edge.valid_from_assumed,
        told_at=edge.told_at,
        end_reason=edge.end_reason,
        **found,
    )


def with_trust(
    backend: GraphBackend, scopes: Sequence[Scope], facts: Sequence[Fact], minimum: Trust = "untrusted"
) -> tuple[Fact, ...]:
    """Return the facts of at least some trust, each with that of its best source; one round trip.

    Of a fact with many sources, the newest 20 count. A fact without sources is trusted: the caller stated it.
    """
    ids = dict.fromkeys(i for fact in facts for i in fact.episode_ids[-_SOURCES:])
    levels: dict[str, Trust] = {
        i: trust_of(e) for i, e in (backend.get_episodes(scopes, list(ids)) if ids else {}).items()
    }
    trusts: list[Trust] = [
        best_trust([levels[i] for i in fact.episode_ids[-_SOURCES:] if i in levels]) for fact in facts
    ]
    return tuple(
        fact if trust == fact.trust else fact.changed(trust=trust)
        for fact, trust in zip(facts, trusts, strict=True)
        if is_trusted(trust, minimum)
    )


def to_facts(backend: GraphBackend, scopes: Sequence[Scope], edges: Sequence[Edge]) -> tuple[Fact, ...]:
    """Return edges as facts with the names of their ends and the trust of their sources; two round trips."""
    ids = dict.fromkeys(i for e in edges for i in (e.source_id, e.target_id))
    names: dict[str, Entity] = backend.get_entities(scopes, list(ids)) if ids else {}
    facts = [to_fact(e, names[e.source_id].name, names[e.target_id].name) for e in edges]
    return with_trust(backend, scopes, facts)
