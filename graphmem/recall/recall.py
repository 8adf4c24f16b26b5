"""Fact recall for a question: seeds, expansion, strategy, scoring."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

import numpy as np

from graphmem.models import (
    Edge,
    EdgeKey,
    EdgeType,
    EpisodeQuery,
    Scope,
    Subgraph,
)
from graphmem.models.arrays import Float64s, Int64s
from graphmem.ontology import Ontology
from graphmem.protocols import GraphBackend, expired_entities
from graphmem.recall import scoring, strategies
from graphmem.recall.entity_embeddings import EntityEmbeddings, entity_vectors, query_cosines
from graphmem.recall.evidence import Evidence, StatedFacts, stated_facts
from graphmem.recall.facts import to_fact
from graphmem.recall.options import RecallOptions
from graphmem.recall.periods import asks_ahead, asks_end
from graphmem.recall.routing import HeuristicRouter, plan
from graphmem.recall.seeds import find_seeds
from graphmem.recall.sources import Sources, sources_of, with_trust
from graphmem.recall.subgraph import Neighborhood, with_only
from graphmem.recall.walks import Walk, walk_breadth_first
from graphmem.results import Fact, RecallResult, ScoreParts, Seed, Strategy
from graphmem.telemetry import in_span
from graphmem.text.normalize import query_words
from graphmem.trust import LEVELS

INFERRED_FACTOR = 0.5
"""Factor of the score of an inferred fact."""

Observe = Callable[[Subgraph, Walk, Float64s], None]

_TRUST_POOL = 4  # facts that are looked at first for one of the trust that is asked for
_MENTIONS = 10_000  # maximum mentions of a subgraph's entities in a walk, oldest episodes first

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RecallContext:
    """The store that a recall reads, and what it reads it with.

    Attributes
    ----------
    backend, scopes, ontology
        The store, the scopes to read, and the ontology to apply.
    now
        Reference time of ages, relative dates and expiry.
    embeddings
        Optional vectors, for seeds without a word match and for the strategies that use them (astar, ppr).
    observer
        Called with the subgraph, the walk and the scores of the edges, if there are seeds.
    evidence
        Episodes that a search found for the question.
    """

    backend: GraphBackend
    scopes: Sequence[Scope]
    ontology: Ontology
    now: datetime
    embeddings: EntityEmbeddings | None = None
    observer: Observe | None = None
    evidence: Evidence = field(default_factory=Evidence)


def recall(context: RecallContext, query: str, options: RecallOptions) -> RecallResult:
    """Return the facts around the entities named in a question, and those that episodes state, best first.

    The score of a fact is ``seed × proximity × reach × effective confidence × edge type weight × recency × relevance ×
    relation × past × inferred + evidence``; the strategy defines the first three, `stated_facts` the last. Facts about
    a seed that are over without a successor are included. Facts with the same (source, relation, target, edge type) are
    deduplicated to the best one. With filters, only facts that a matching episode states are walked. Facts all of whose
    episodes have expired aren't returned, nor what was inferred from them: if an expired one is among the sources of
    the result, the graph is walked again without them.
    """
    backend, scopes, now, evidence = context.backend, context.scopes, context.now, context.evidence
    seeds = find_seeds(
        backend,
        scopes,
        query,
        structural_weight=options.seed_structural_weight,
        limit=options.max_seeds,
        community_cap=options.seed_community_cap,
        as_of=options.as_of,
        # entities found by vectors would be taken for the asker
        embeddings=None if evidence.unknown_asker else context.embeddings,
        mode=options.seed_mode,
    )
    strategy, edge_types = _planned(query, seeds, options, now)
    stated = stated_facts(backend, scopes, query, evidence, options, context.ontology, now)
    run = _Run(context, query, options, seeds, strategy, edge_types)
    scored, facts, sources = run.find(stated, live=False)
    if seeds and sources.expired(now):
        scored, facts, sources = run.find(stated, live=True)
    if context.observer is not None and scored is not None:
        context.observer(scored.graph, scored.walk, scored.total)
    facts = facts[: options.limit]
    named = {end for fact in facts for end in (fact.source_id, fact.target_id)}
    gone = expired_entities(backend, scopes, {seed.entity_id for seed in seeds} - named, now)
    return RecallResult(
        query=query,
        facts=facts,
        seeds=tuple(seed for seed in seeds if seed.entity_id not in gone),
        as_of=options.as_of,
        strategy=strategy,
        timed_out=scored is not None and scored.walk.timed_out,
        degraded=evidence.degraded,
        confidence=evidence.confidence,
    )


def _planned(
    query: str, seeds: Sequence[Seed], options: RecallOptions, now: datetime
) -> tuple[Strategy, tuple[EdgeType, ...]]:
    """Return the strategy and the edge types of the options; with "auto", those that the router chooses."""
    if options.strategy != "auto":
        return options.strategy, options.edge_types
    strategy, edge_types = plan(query, HeuristicRouter().route(query, [seed.name for seed in seeds], now=now))
    return strategy, options.edge_types or edge_types


@dataclass(frozen=True, slots=True)
class _Run:
    """A recall whose seeds, strategy and edge types are known."""

    context: RecallContext
    query: str
    options: RecallOptions
    seeds: Sequence[Seed]
    strategy: Strategy
    edge_types: tuple[EdgeType, ...]

    def find(self, stated: StatedFacts, *, live: bool) -> tuple[_Scored | None, tuple[Fact, ...], Sources]:
        """Return the walk, only along facts with a source that hasn't expired if `live`, the best facts and sources."""
        options = self.options
        scored = self.walked(live=live) if self.seeds else None
        any_trust = options.min_trust == LEVELS[0]
        most = options.limit if any_trust else _TRUST_POOL * options.limit
        while True:
            facts = self.best_facts(scored, stated, most, versions=not any_trust)
            sources = sources_of(self.context.backend, self.context.scopes, facts)
            trusted = tuple(_first_of_each(with_trust(facts, sources, options.min_trust), _key))
            if any_trust or len(trusted) >= options.limit or len(facts) < most:
                return scored, trusted, sources
            most *= _TRUST_POOL

    @in_span("graphmem.recall.walk")
    def walked(self, *, live: bool) -> _Scored:
        """Return the facts around the seeds with the scores of a walk; `live` leaves out facts that have expired."""
        deadline = time.monotonic() + self.options.spreading.time_limit
        graph, past = self._of_other_times(self._expanded())
        graph, past = self._filtered(graph, past, live=live)
        by_id = {seed.entity_id: seed.score for seed in self.seeds}
        seed_scores = np.array([by_id.get(i, 0.0) for i in graph.node_ids])
        walk = self._walk(graph, seed_scores, deadline)
        return self._scored(graph, walk, past)

    def _expanded(self) -> Subgraph:
        """Return the subgraph of the current facts around the seeds; of all types if the routed ones have none."""
        options, around = self.options, self._around
        hops = options.hops(self.strategy)
        graph = around.expand(hops, self.edge_types)
        if not graph.edge_ids and self.edge_types != options.edge_types:
            graph = around.expand(hops, ())
        return graph if options.filters is None or not hops else around.with_facts_of_hubs(graph)

    def _of_other_times(self, graph: Subgraph) -> tuple[Subgraph, Float64s]:
        """Add the facts of other times that are asked for; return the factor of each, below 1 unless it holds now."""
        options, around = self.options, self._around
        if not options.hops(self.strategy):
            return graph, np.ones(len(graph.edge_ids))
        if options.as_of is None:
            graph, factors = around.with_past(graph)
            if asks_end(self.query):
                factors = np.ones(len(factors))
            now = self.context.now
            if (graph.valid_from > now.timestamp()).any() and not asks_ahead(self.query, now):
                factors = factors * around.ahead_factors(graph, now)
            return graph, factors
        holding = len(graph.edge_ids)
        if options.ended_after is not None:
            graph = around.with_ended(graph, (options.ended_after, options.as_of.valid))
        if options.only_ended:
            graph = with_only(graph, np.arange(len(graph.edge_ids)) >= holding)
        graph = around.with_unknown_beginnings(graph)
        return graph, np.ones(len(graph.edge_ids))

    def _filtered(self, graph: Subgraph, past: Float64s, *, live: bool) -> tuple[Subgraph, Float64s]:
        """Leave out inferred facts, those that the filters exclude, and expired ones, as the options say."""
        if not self.options.include_inferred:
            graph, past = with_only(graph, ~graph.inferred), past[~graph.inferred]
        if self.options.filters is not None:
            kept = self._around.stated_in(graph, self.options.filters)
            graph, past = with_only(graph, kept), past[kept]
        if live:
            kept = self._around.not_expired(graph, self.context.now)
            graph, past = with_only(graph, kept), past[kept]
        return graph, past

    def _walk(self, graph: Subgraph, seed_scores: Float64s, deadline: float) -> Walk:
        """Walk from the seeds by the strategy."""
        match self.strategy:
            case "bfs":
                return walk_breadth_first(graph, seed_scores)
            case "spreading":
                return strategies.spread_activation(
                    graph,
                    seed_scores,
                    self.options.spreading,
                    now=self.context.now.timestamp(),
                    decay_rate=self.options.temporal_decay_rate,
                    deadline=deadline,
                )
            case "ppr":
                vectors = entity_vectors(self.context.embeddings, self.context.scopes, graph.node_ids)
                return strategies.walk_pagerank(graph, seed_scores, self._mentions(graph.node_ids), vectors)
            case "astar":
                cosines = query_cosines(self.context.embeddings, self.context.scopes, self.query, graph.node_ids)
                return strategies.walk_cheapest_paths(graph, seed_scores, cosines)

    def _scored(self, graph: Subgraph, walk: Walk, past: Float64s) -> _Scored:
        """Return the facts of a subgraph with the scores of a walk, given the factor of each that is over or ahead."""
        options, ontology = self.options, self.context.ontology
        shared, named = np.zeros(len(graph.edge_ids)), np.ones(len(graph.edge_ids))
        if options.fact_text_weight:
            words, said = query_words(self.query, short=True), zip(graph.relations, graph.facts, strict=True)
            shared = scoring.shared_words(words, [scoring.fact_text(*each, ontology) for each in said])
            named = scoring.relation_factor(words, graph.relations, ontology)
        parts = walk.parts | scoring.fact_factors(
            graph.confidence,
            graph.retrieval_count,
            graph.edge_types,
            graph.valid_from,
            past,
            shared,
            now=self.context.now.timestamp(),
            decay_rate=options.temporal_decay_rate,
            text_weight=options.fact_text_weight,
        )
        parts |= {"relation": named, "inferred": np.where(graph.inferred, INFERRED_FACTOR, 1.0)}
        total = np.ones(len(graph.edge_ids))
        for values in parts.values():
            total = total * values
        return _Scored(graph, walk, parts, total)

    def _mentions(self, entity_ids: Sequence[str]) -> list[tuple[str, str]]:
        """Return (entity id, episode id) of each mention in an episode to read; one or two round trips."""
        options = self.options
        mentions = self.context.backend.find_mentions(self.context.scopes, entity_ids=entity_ids, limit=_MENTIONS)
        if options.as_of is None and options.filters is None:
            return [(m.entity_id, m.episode_id) for m in mentions]
        ids = tuple(dict.fromkeys(m.episode_id for m in mentions))
        query = EpisodeQuery(ids=ids, as_of=options.as_of, filters=options.filters)
        seen = set(self.context.backend.find_episode_ids(self.context.scopes, query))
        return [(m.entity_id, m.episode_id) for m in mentions if m.episode_id in seen]

    @property
    def _around(self) -> Neighborhood:
        ids = [seed.entity_id for seed in self.seeds]
        return Neighborhood(self.context.backend, self.context.scopes, ids, self.options)

    @in_span("graphmem.recall.select")
    def best_facts(self, scored: _Scored | None, stated: StatedFacts, most: int, *, versions: bool) -> list[Fact]:
        """Return the best facts of a walk and of the best episodes, ties by latest valid_from.

        Each edge key is there once, or several times with `versions`, if a version may be left out for its trust.
        """
        if not most:
            return []
        edges, walked = self._ranked_edges(scored, stated, most, versions=versions)
        facts: list[Fact] = []
        for start in range(0, len(edges), most):  # a second part is read if facts of the first are hidden
            facts += self._as_facts(edges[start : start + most], walked, scored, stated)
            if len(facts) >= most:
                break
        return facts[:most]

    def _ranked_edges(
        self, scored: _Scored | None, stated: StatedFacts, most: int, *, versions: bool
    ) -> tuple[list[Edge], dict[str, int]]:
        """Return the edges that are walked or stated, best first, and the position in the walk of each walked one."""
        positions = [] if scored is None else _best(scored, most, versions=versions)
        walked: dict[str, int] = {} if scored is None else {scored.graph.edge_ids[i]: i for i in positions}
        missing = [i for i in walked if i not in stated.edges]
        edges = {**(self.context.backend.get_edges(self.context.scopes, missing) if missing else {}), **stated.edges}
        if scored is not None:
            reached = (i for i, edge_id in enumerate(scored.graph.edge_ids) if edge_id in stated.edges)
            walked.update((scored.graph.edge_ids[i], i) for i in reached if scored.walk.near[i] >= 0)

        def total(edge: Edge) -> float:
            near = 0.0 if scored is None or edge.id not in walked else float(scored.total[walked[edge.id]])
            return near + stated.evidence.get(edge.id, 0.0)

        ranked = sorted(edges.values(), key=lambda edge: (-total(edge), -edge.valid_from.timestamp(), edge.id))
        return ranked if versions else _first_of_each(ranked, lambda edge: edge.key), walked

    def _as_facts(
        self, edges: Sequence[Edge], walked: Mapping[str, int], scored: _Scored | None, stated: StatedFacts
    ) -> Iterator[Fact]:
        """Yield the facts of edges; skip edges outside of the walk that have an archived end."""
        names = self._names([edge for edge in edges if edge.id not in walked])
        for edge in edges:
            known = edge if self.options.as_of is None else edge.as_known(self.options.as_of.known)
            if scored is not None and edge.id in walked:
                yield scored.fact(walked[edge.id], known, stated.evidence.get(edge.id, 0.0))
            elif edge.source_id in names and edge.target_id in names:
                of_ends = names[edge.source_id], names[edge.target_id]
                yield to_fact(known, *of_ends, score=stated.evidence[edge.id], parts=stated.parts(edge.id))

    def _names(self, edges: Sequence[Edge]) -> dict[str, str]:
        """Return the names of the ends of facts, without those that are archived."""
        ends = dict.fromkeys(end for edge in edges for end in (edge.source_id, edge.target_id))
        entities = self.context.backend.get_entities(self.context.scopes, list(ends)) if ends else {}
        return {entity.id: entity.name for entity in entities.values() if entity.archived_at is None}


@dataclass(frozen=True, slots=True)
class _Scored:
    """Facts of a subgraph with their scores; arrays of shape (m,)."""

    graph: Subgraph
    walk: Walk
    parts: dict[str, Float64s]
    total: Float64s

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


def _first_of_each(items: Iterable[T], key: Callable[[T], EdgeKey]) -> list[T]:
    """Return the first item of each edge key."""
    found: dict[EdgeKey, T] = {}
    for item in items:
        found.setdefault(key(item), item)
    return list(found.values())


def _key(fact: Fact) -> EdgeKey:
    return (fact.source_id, fact.target_id, fact.relation, fact.edge_type)


def _best(scored: _Scored, limit: int, *, versions: bool) -> list[int]:
    """Return the positions of the best facts, each edge key once unless `versions`; ties by latest valid_from."""
    graph = scored.graph
    found = np.flatnonzero(scored.walk.near >= 0)
    ids = np.array(graph.edge_ids)[found]
    order: Int64s = found[
        np.lexsort((ids, -graph.valid_from[found], -scored.total[found]))
    ]  # the last key is the primary one
    if versions:
        return [int(position) for position in order[:limit]]
    best: dict[EdgeKey, int] = {}
    for position in order:
        i = int(position)
        source, target = graph.node_ids[int(graph.source[i])], graph.node_ids[int(graph.target[i])]
        best.setdefault((source, target, graph.relations[i], graph.edge_types[i]), i)
        if len(best) == limit:
            break
    return list(best.values())
