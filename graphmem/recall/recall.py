"""Fact recall for a question: seeds, expansion, strategy, scoring; and the history of facts (time)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from graphmem.models import (
    AsOf,
    Edge,
    EdgeKey,
    EdgeQuery,
    EdgeType,
    Entity,
    EpisodeQuery,
    ExpandLimits,
    Scope,
    Subgraph,
    TimeAxis,
    is_retracted,
)
from graphmem.ontology import Ontology
from graphmem.protocols import GraphBackend
from graphmem.recall import scoring, strategies
from graphmem.recall.options import RecallOptions
from graphmem.recall.routing import HeuristicRouter, plan
from graphmem.recall.scoring import Floats, Positions, Walk
from graphmem.recall.seeds import EntityEmbeddings, entity_vectors, find_seeds, query_cosines
from graphmem.recall.subgraph import (
    Evidence,
    Sources,
    StatedFacts,
    not_expired,
    sources_of,
    stated_facts,
    stated_in,
    unexpired,
    with_ended,
    with_facts_of_hubs,
    with_only,
    with_past,
    with_trust,
    with_unknown_beginnings,
)
from graphmem.results import Diff, EntityCounts, Fact, RecallResult, ScoreParts, Seed, Strategy
from graphmem.telemetry import in_span, timed
from graphmem.text.normalize import query_words
from graphmem.trust import LEVELS

INFERRED = 0.5
"""Factor of the score of an inferred fact."""

Observe = Callable[[Subgraph, Walk, Floats], None]

_TRUST_POOL = 4  # facts that are looked at first for one of the trust that is asked for
_MENTIONS = 10_000  # maximum mentions of a subgraph's entities in a walk, oldest episodes first


def recall(
    backend: GraphBackend,
    scopes: Sequence[Scope],
    query: str,
    options: RecallOptions,
    ontology: Ontology,
    now: datetime,
    embeddings: EntityEmbeddings | None = None,
    observer: Observe | None = None,
    evidence: Evidence | None = None,
) -> RecallResult:
    """Return the facts around the entities named in a question, and those that episodes state, best first.

    The score of a fact is ``seed × proximity × reach × effective confidence × edge type weight × recency × relevance ×
    past × inferred + evidence``; the strategy defines the first three, `stated_facts` the last. Facts about a seed that
    are over without a successor are included. Facts with the same (source, relation, target, edge type) are
    deduplicated to the best one. With filters, only facts that a matching episode states are walked. Facts all of whose
    episodes have expired aren't returned, nor what was inferred from them: if an expired one is among the sources of
    the result, the graph is walked again without them.

    Parameters
    ----------
    backend, scopes, query, options, ontology
        The store, the scopes to search, the question, and the options and ontology to apply.
    now
        Reference time of ages, relative dates and expiry.
    embeddings
        Optional vectors, for seeds without a word match and for the strategies that use them (astar, ppr).
    observer
        Called with the subgraph, the walk and the scores of the edges, if there are seeds.
    evidence
        Episodes that a search found for the question.
    """
    evidence = evidence or Evidence()
    seeds = find_seeds(
        backend,
        scopes,
        query,
        structural_weight=options.seed_structural_weight,
        limit=options.max_seeds,
        community_cap=options.seed_community_cap,
        as_of=options.as_of,
        embeddings=None if evidence.unknown_asker else embeddings,  # who is near in meaning isn't who asks
        mode=options.seed_mode,
    )
    strategy, edge_types = _planned(query, seeds, options, now)
    stated = stated_facts(backend, scopes, query, evidence, options, ontology, now)

    def find(*, live: bool) -> tuple[_Scored | None, tuple[Fact, ...], Sources]:
        """Return the walk, only along facts with a source that hasn't expired if `live`, the best facts and sources."""
        planned = (seeds, options, strategy, edge_types, ontology, now, embeddings)
        scored = _walked(backend, scopes, query, *planned, live=live) if seeds else None
        any_trust = options.min_trust == LEVELS[0]
        most = options.limit if any_trust else _TRUST_POOL * options.limit
        while True:
            facts = _best_facts(backend, scopes, scored, stated, options, most)
            sources = sources_of(backend, scopes, facts)
            trusted = with_trust(facts, sources, options.min_trust)
            if any_trust or len(trusted) >= options.limit or len(facts) < most:
                return scored, trusted, sources
            most *= _TRUST_POOL

    scored, facts, sources = find(live=False)
    if seeds and sources.expired(now):
        scored, facts, sources = find(live=True)
    if observer is not None and scored is not None:
        observer(scored.graph, scored.walk, scored.total)
    return RecallResult(
        query=query,
        facts=facts[: options.limit],
        seeds=tuple(seeds),
        as_of=options.as_of,
        strategy=strategy,
        timed_out=scored is not None and scored.walk.timed_out,
        degraded=evidence.degraded,
        confidence=evidence.confidence,
    )


@in_span("graphmem.recall.walk")
def _walked(
    backend: GraphBackend,
    scopes: Sequence[Scope],
    query: str,
    seeds: Sequence[Seed],
    options: RecallOptions,
    strategy: Strategy,
    edge_types: tuple[EdgeType, ...],
    ontology: Ontology,
    now: datetime,
    embeddings: EntityEmbeddings | None,
    *,
    live: bool,
) -> _Scored:
    """Return the facts around the seeds with the scores of a walk; `live` leaves out facts that have expired."""
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
    elif options.as_of is not None and options.hops(strategy):
        holding = len(graph.edge_ids)
        if options.ended_after is not None:
            between = options.ended_after, options.as_of.valid
            graph = with_ended(backend, scopes, graph, ids, options.edge_types, limits, between)
        if options.only_ended:
            graph = with_only(graph, np.arange(len(graph.edge_ids)) >= holding)
        graph = with_unknown_beginnings(backend, scopes, graph, ids, limits, options)
        past = np.ones(len(graph.edge_ids))
    if not options.include_inferred:
        graph, past = with_only(graph, ~graph.inferred), past[~graph.inferred]
    if options.filters is not None:
        kept = stated_in(backend, scopes, graph, options.filters)
        graph, past = with_only(graph, kept), past[kept]
    if live:
        kept = not_expired(backend, scopes, graph, now)
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
            vectors = entity_vectors(embeddings, scopes, graph.node_ids)
            walk = strategies.walk_pagerank(graph, seed_scores, mentions, vectors)
        case "astar":
            cosines = query_cosines(embeddings, scopes, query, graph.node_ids)
            walk = strategies.walk_cheapest_paths(graph, seed_scores, cosines)
    return _score(graph, walk, query, options, ontology, now, past)


@in_span("graphmem.recall.select")
def _best_facts(
    backend: GraphBackend,
    scopes: Sequence[Scope],
    scored: _Scored | None,
    stated: StatedFacts,
    options: RecallOptions,
    most: int,
) -> list[Fact]:
    """Return the best facts of a walk and of the best episodes, each edge key once, ties by latest valid_from."""
    walked: dict[str, int] = {} if scored is None else {scored.graph.edge_ids[i]: i for i in _best(scored, most)}
    missing = [i for i in walked if i not in stated.edges]
    edges = {**(backend.get_edges(scopes, missing) if missing else {}), **stated.edges}
    if scored is not None:
        reached = (i for i, edge_id in enumerate(scored.graph.edge_ids) if edge_id in stated.edges)
        walked.update((scored.graph.edge_ids[i], i) for i in reached if scored.walk.near[i] >= 0)

    def total(edge: Edge) -> float:
        near = 0.0 if scored is None or edge.id not in walked else float(scored.total[walked[edge.id]])
        return near + stated.evidence.get(edge.id, 0.0)

    best: dict[EdgeKey, Edge] = {}
    for edge in sorted(edges.values(), key=lambda edge: (-total(edge), -edge.valid_from.timestamp(), edge.id)):
        best.setdefault(edge.key, edge)
        if len(best) == most:
            break
    alone = [edge for edge in best.values() if edge.id not in walked]
    ends = dict.fromkeys(end for edge in alone for end in (edge.source_id, edge.target_id))
    entities = backend.get_entities(scopes, list(ends)) if ends else {}
    names = {entity.id: entity.name for entity in entities.values() if entity.archived_at is None}
    facts: list[Fact] = []
    for edge in best.values():
        known = edge if options.as_of is None else edge.as_known(options.as_of.known)
        if scored is not None and edge.id in walked:
            facts.append(scored.fact(walked[edge.id], known, stated.evidence.get(edge.id, 0.0)))
        elif edge.source_id in names and edge.target_id in names:
            of_ends = names[edge.source_id], names[edge.target_id]
            facts.append(to_fact(known, *of_ends, score=stated.evidence[edge.id], parts=stated.parts(edge.id)))
    return facts


def _expand(
    backend: GraphBackend,
    scopes: Sequence[Scope],
    seeds: Sequence[Seed],
    options: RecallOptions,
    strategy: Strategy,
    edge_types: tuple[EdgeType, ...],
) -> Subgraph:
    hops = options.hops(strategy)
    with timed("graph_traversal_duration_ms", depth=str(hops)):
        return backend.expand(
            scopes,
            [seed.entity_id for seed in seeds],
            hops=hops,
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

    def fact(self, i: int, edge: Edge, evidence: float) -> Fact:
        names = self.graph.names
        path = tuple(names[node] for node in self.walk.reached.path(int(self.walk.near[i])))
        return to_fact(
            edge,
            names[int(self.graph.source[i])],
            names[int(self.graph.target[i])],
            score=float(self.total[i]) + evidence,
            hop=len(path) - 1,
            seed=path[0],
            path=path,
            parts=ScoreParts(**{name: float(values[i]) for name, values in self.parts.items()}, evidence=evidence),
        )


def _score(
    graph: Subgraph, walk: Walk, query: str, options: RecallOptions, ontology: Ontology, now: datetime, past: Floats
) -> _Scored:
    shared = np.zeros(len(graph.edge_ids))
    if options.fact_text_weight:
        said = zip(graph.relations, graph.facts, strict=True)
        shared = scoring.shared_words(query_words(query), [scoring.fact_text(*each, ontology) for each in said])
    columns = (graph.confidence, graph.retrieval_count, graph.edge_types, graph.valid_from)
    parts = walk.parts | scoring.fact_factors(
        *columns,
        past,
        shared,
        now=now.timestamp(),
        decay_rate=options.temporal_decay_rate,
        text_weight=options.fact_text_weight,
    )
    parts["inferred"] = np.where(graph.inferred, INFERRED, 1.0)
    total = np.ones(len(graph.edge_ids))
    for values in parts.values():
        total = total * values
    return _Scored(graph, walk, parts, total)


def _best(scored: _Scored, limit: int) -> list[int]:
    """Return the positions of the best facts, each edge key once; ties are ordered by latest valid_from."""
    graph = scored.graph
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
        inferred_by=edge.inferred_by,
        **found,
    )


def to_facts(
    backend: GraphBackend, scopes: Sequence[Scope], edges: Sequence[Edge], now: datetime | None = None
) -> tuple[Fact, ...]:
    """Return edges as facts with the names of their ends and the trust of their sources; two round trips.

    With a time, facts all of whose episodes have expired by then are left out, and those inferred from them.
    """
    ids = dict.fromkeys(i for e in edges for i in (e.source_id, e.target_id))
    names: dict[str, Entity] = backend.get_entities(scopes, list(ids)) if ids else {}
    there = (e for e in edges if e.source_id in names and e.target_id in names)  # or they were erased meanwhile
    facts = [to_fact(e, names[e.source_id].name, names[e.target_id].name) for e in there]
    sources = sources_of(backend, scopes, facts)
    if now is not None:
        facts = unexpired(backend, scopes, facts, sources, now)
    return with_trust(facts, sources)


def live_facts(
    backend: GraphBackend, scopes: Sequence[Scope], read: Callable[[int], Sequence[Edge]], limit: int, now: datetime
) -> tuple[Fact, ...]:
    """Return the first facts, at most `limit`, without those all of whose episodes have expired.

    `read` returns the first edges, at most the number that it is called with; it is called again if too many expired.
    """
    wanted = limit
    while True:
        edges = read(wanted)
        facts = to_facts(backend, scopes, edges, now)
        if len(facts) >= limit or len(edges) < wanted:
            return facts[:limit]
        wanted *= _MORE


_MORE = 4
_PAGE = 1000

# History ------------------------------------------------------------------------------------------


_COUNTED_AT_ONCE = 500  # entities per batch


def history(
    backend: GraphBackend,
    scopes: Sequence[Scope],
    source_ids: Sequence[str],
    *,
    relation: str | None,
    text: str | None,
    as_of: AsOf | None,
    limit: int,
    now: datetime,
) -> tuple[Fact, ...]:
    """Return the versions of an entity's facts, newest first, without those whose sources have expired by now.

    With `as_of`, return the versions recorded by `known` that had started by `valid`, without ends that were
    recorded later.
    """
    query = EdgeQuery(
        source_ids=tuple(source_ids),
        relations=None if relation is None else (relation,),
        text=text,
        versions="all",
    )
    if as_of is None:
        read = partial(backend.find_edges, scopes, query, newest_first=True)
        return live_facts(backend, scopes, lambda most: read(limit=most), limit, now)
    edges = [
        e for e in backend.all_edges(scopes, query) if e.recorded_at <= as_of.known and e.valid_from <= as_of.valid
    ]
    edges.sort(key=lambda e: (e.valid_from, e.recorded_at, e.id), reverse=True)
    known = as_of.known
    return live_facts(backend, scopes, lambda most: [e.as_known(known) for e in edges[:most]], limit, now)


def diff(
    backend: GraphBackend, scopes: Sequence[Scope], start: datetime, end: datetime, *, limit: int, now: datetime
) -> Diff:
    """Return the facts that began, ended or were recorded in ``(start, end]``, without those that have expired by now.

    Retracted facts (never true) are listed neither as begun nor as ended.
    """

    def within(axis: TimeAxis, *, retracted: bool = False) -> tuple[Fact, ...]:
        query = EdgeQuery(window=(axis, start, end), versions="all")
        edges = backend.all_edges(scopes, query, chunk=min(limit + 1, _PAGE))
        found = (edge for edge in edges if retracted or not is_retracted(edge))
        first: list[Edge] = []

        def read(most: int) -> list[Edge]:
            first.extend(islice(found, most - len(first)))
            return first

        return live_facts(backend, scopes, read, limit + 1, now)

    began, ended, learned = within("valid_from"), within("valid_to"), within("recorded_at", retracted=True)
    truncated = any(len(facts) > limit for facts in (began, ended, learned))
    return Diff(began=began[:limit], ended=ended[:limit], learned=learned[:limit], truncated=truncated)


def count_entities(
    backend: GraphBackend, scopes: Sequence[Scope], entities: Sequence[Entity], as_of: AsOf | None
) -> list[EntityCounts]:
    """Return entities with the numbers of their mentions and of their visible facts at a time."""
    facts: Counter[str] = Counter()
    mentions: Counter[str] = Counter()
    ids = [entity.id for entity in entities]
    for start in range(0, len(ids), _COUNTED_AT_ONCE):
        some = ids[start : start + _COUNTED_AT_ONCE]
        batch = set(some)
        for edge in backend.all_edges(scopes, EdgeQuery(touching=tuple(some), as_of=as_of)):
            facts.update({edge.source_id, edge.target_id} & batch)
        for mention in backend.all_mentions(scopes, entity_ids=some):
            mentions[mention.entity_id] += as_of is None or mention.seen_at <= as_of.valid
    return [EntityCounts(entity=e, mentions=mentions[e.id], facts=facts[e.id]) for e in entities]
