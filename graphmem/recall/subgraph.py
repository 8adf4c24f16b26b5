"""The subgraph of a recall: facts added to what the store expands, those that episodes state, and facts left out.

Facts of the past, which ended without a successor, are added and ranked below what holds; so are all facts of seeds
that have more than one hop reads. Left out are facts that no matching episode states, or whose episodes have expired.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain

import numpy as np

from graphmem.models import (
    PREMISES,
    AsOf,
    Edge,
    EdgeQuery,
    EdgeType,
    Episode,
    EpisodeFilter,
    EpisodeQuery,
    ExpandLimits,
    Scope,
    Subgraph,
    is_expired,
    is_past,
    is_retracted,
    is_visible,
)
from graphmem.models.base import END_OF_TIME
from graphmem.ontology import Ontology
from graphmem.protocols import GraphBackend, find_premises, without_expired
from graphmem.recall import scoring
from graphmem.recall.options import RecallOptions
from graphmem.recall.scoring import Flags, Floats
from graphmem.results import Fact, Premise, ScoreParts
from graphmem.telemetry import in_span
from graphmem.text.normalize import query_words
from graphmem.trust import LEVELS, Trust, best_trust, is_trusted, lowest_trust, trust_of

PAST = 0.5
"""Factor of the score of a state that is over."""

_MOST_PAST = 100  # past facts, the latest first
_MOST_OF_HUBS = 10_000  # facts of seeds with more facts than a hop reads, the newest first


def with_past(
    backend: GraphBackend,
    scopes: Sequence[Scope],
    graph: Subgraph,
    seed_ids: Sequence[str],
    edge_types: tuple[EdgeType, ...],
    limits: ExpandLimits,
) -> tuple[Subgraph, Floats]:
    """Return a subgraph with the past facts about its seeds, and the factor of each fact, shape (m,).

    Seeds with as many facts that hold as one hop reads are left out, because reading their past would be a scan. One or
    two round trips.
    """
    few = _seeds(graph, seed_ids, limits, hubs=False)
    edges = _latest(backend, scopes, EdgeQuery(touching=few, edge_types=edge_types or None, versions="past"))
    count = len(graph.edge_ids)
    graph = with_edges(backend, scopes, graph, edges)
    factors = {edge.id: past_factor(edge) for edge in edges}
    return graph, np.concatenate((np.ones(count), [factors[i] for i in graph.edge_ids[count:]]))


def past_factor(edge: Edge) -> float:
    """Return the factor of the score of a fact that is over; that an event happened still holds."""
    return PAST if edge.kind == "state" else 1.0


def with_ended(
    backend: GraphBackend,
    scopes: Sequence[Scope],
    graph: Subgraph,
    seed_ids: Sequence[str],
    edge_types: tuple[EdgeType, ...],
    limits: ExpandLimits,
    between: tuple[datetime, datetime],
) -> Subgraph:
    """Return a subgraph with the facts about its seeds that ended after a time and by another, replaced ones included.

    Seeds with as many facts as one hop reads are left out, as in `with_past`. One or two round trips.
    """
    few = _seeds(graph, seed_ids, limits, hubs=False)
    query = EdgeQuery(touching=few, edge_types=edge_types or None, window=("valid_to", *between), versions="all")
    edges = [edge for edge in _latest(backend, scopes, query) if not is_retracted(edge)]
    return with_edges(backend, scopes, graph, edges)


def with_unknown_beginnings(
    backend: GraphBackend,
    scopes: Sequence[Scope],
    graph: Subgraph,
    seed_ids: Sequence[str],
    limits: ExpandLimits,
    options: RecallOptions,
) -> Subgraph:
    """Return a subgraph with the facts about its seeds that may have begun by `as_of`: see `RecallOptions`.

    Seeds with as many facts as one hop reads are left out, as in `with_past`. One to three round trips.
    """
    few = _seeds(graph, seed_ids, limits, hubs=False)
    if options.as_of is None or options.only_ended or not few:
        return graph
    later = ("valid_from", options.as_of.valid, END_OF_TIME)
    query = EdgeQuery(touching=few, edge_types=options.edge_types or None, window=later, versions="all")
    found = backend.find_edges(scopes, query, limit=_MOST_PAST)
    return with_edges(backend, scopes, graph, without_another_value(backend, scopes, found, options))


def without_another_value(
    backend: GraphBackend, scopes: Sequence[Scope], edges: Iterable[Edge], options: RecallOptions
) -> list[Edge]:
    """Return the facts that may have begun by `as_of` and for whose source and relation no other fact held then.

    One round trip, if there are any; more if over 1,000 other facts held.
    """
    begun = [edge for edge in edges if options.may_have_begun(edge)]
    empty = {(edge.source_id, edge.relation) for edge in begun}
    held = backend.all_edges(scopes, EdgeQuery(slots=tuple(empty), as_of=options.as_of)) if empty else ()
    for edge in held:
        empty.discard((edge.source_id, edge.relation))
        if not empty:
            break
    return [edge for edge in begun if (edge.source_id, edge.relation) in empty]


def _latest(backend: GraphBackend, scopes: Sequence[Scope], query: EdgeQuery) -> Sequence[Edge]:
    """Return the latest facts about some entities; none without entities."""
    return backend.find_edges(scopes, query, limit=_MOST_PAST, newest_first=True) if query.touching else []


def _seeds(graph: Subgraph, seed_ids: Sequence[str], limits: ExpandLimits, *, hubs: bool) -> tuple[str, ...]:
    """Return the seeds that have as many facts as one hop reads (`hubs`), or those that have fewer."""
    degree = Counter((*graph.source.tolist(), *graph.target.tolist()))
    position = {node: i for i, node in enumerate(graph.node_ids)}
    most = limits.per_node(len(seed_ids))
    return tuple(i for i in seed_ids if i in position and (degree[position[i]] >= most) == hubs)


def with_edges(backend: GraphBackend, scopes: Sequence[Scope], graph: Subgraph, edges: Sequence[Edge]) -> Subgraph:
    """Return a subgraph with further facts of its nodes, and their other ends, which must not be archived."""
    position = {node: i for i, node in enumerate(graph.node_ids)}
    others = {end for edge in edges for end in (edge.source_id, edge.target_id)} - position.keys()
    found = backend.get_entities(scopes, sorted(others)) if others else {}
    added = [entity for _, entity in sorted(found.items()) if entity.archived_at is None]
    position.update((entity.id, len(graph.node_ids) + n) for n, entity in enumerate(added))
    known = set(graph.edge_ids)
    edges = [e for e in edges if e.id not in known and e.source_id in position and e.target_id in position]
    if not edges:
        return graph
    return replace(
        graph,
        node_ids=[*graph.node_ids, *(entity.id for entity in added)],
        names=[*graph.names, *(entity.name for entity in added)],
        entity_types=[*graph.entity_types, *(entity.entity_type for entity in added)],
        depth=np.append(graph.depth, np.ones(len(added), dtype=np.int64)),
        edge_ids=[*graph.edge_ids, *(e.id for e in edges)],
        relations=[*graph.relations, *(e.relation for e in edges)],
        edge_types=[*graph.edge_types, *(e.edge_type for e in edges)],
        facts=[*graph.facts, *(e.fact for e in edges)],
        source=np.append(graph.source, [position[e.source_id] for e in edges]).astype(np.int64),
        target=np.append(graph.target, [position[e.target_id] for e in edges]).astype(np.int64),
        confidence=np.append(graph.confidence, [e.confidence for e in edges]),
        retrieval_count=np.append(graph.retrieval_count, [e.retrieval_count for e in edges]),
        valid_from=np.append(graph.valid_from, [e.valid_from.timestamp() for e in edges]),
        inferred=np.append(graph.inferred, [e.is_inferred for e in edges]).astype(np.bool_),
    )


def with_facts_of_hubs(
    backend: GraphBackend,
    scopes: Sequence[Scope],
    graph: Subgraph,
    seed_ids: Sequence[str],
    edge_types: tuple[EdgeType, ...],
    as_of: AsOf | None,
    limits: ExpandLimits,
) -> Subgraph:
    """Return a subgraph with all facts of the seeds that have more than one hop reads.

    A hop reads the facts with the highest confidence, among which there may be none that a filter matches.
    """
    hubs = _seeds(graph, seed_ids, limits, hubs=True)
    if not hubs:
        return graph
    query = EdgeQuery(touching=hubs, edge_types=edge_types or None, as_of=as_of)
    return with_edges(backend, scopes, graph, backend.find_edges(scopes, query, limit=_MOST_OF_HUBS, newest_first=True))


def stated_in(backend: GraphBackend, scopes: Sequence[Scope], graph: Subgraph, wanted: EpisodeFilter) -> Flags:
    """Return whether an episode that matches a filter states each fact, shape (m,); two round trips."""
    edges = backend.get_edges(scopes, graph.edge_ids) if graph.edge_ids else {}
    sources = [edges[i].episode_ids if i in edges else () for i in graph.edge_ids]
    matching = _selected(backend, scopes, sources, EpisodeQuery(filters=wanted))
    return np.array([not matching.isdisjoint(ids) for ids in sources], dtype=bool)


def not_expired(backend: GraphBackend, scopes: Sequence[Scope], graph: Subgraph, now: datetime) -> Flags:
    """Return whether each fact has a source that hasn't expired, or none at all, shape (m,).

    All premises of an inferred fact must have one. Two round trips, and one for each level of premises.
    """
    edges = backend.get_edges(scopes, graph.edge_ids) if graph.edge_ids else {}
    gone = edges.keys() - {edge.id for edge in without_expired(backend, scopes, list(edges.values()), now)}
    return np.array([i not in gone for i in graph.edge_ids], dtype=bool)


def _selected(
    backend: GraphBackend, scopes: Sequence[Scope], sources: Sequence[tuple[str, ...]], query: EpisodeQuery
) -> set[str]:
    """Return the ids of those sources that a query selects."""
    named = tuple(dict.fromkeys(chain.from_iterable(sources)))
    return set(backend.find_episode_ids(scopes, replace(query, ids=named))) if named else set()


def with_only(graph: Subgraph, kept: Flags) -> Subgraph:
    """Return a subgraph without the facts that aren't kept; its nodes stay."""
    chosen = np.flatnonzero(kept).tolist()
    return replace(
        graph,
        edge_ids=[graph.edge_ids[i] for i in chosen],
        relations=[graph.relations[i] for i in chosen],
        edge_types=[graph.edge_types[i] for i in chosen],
        facts=[graph.facts[i] for i in chosen],
        source=graph.source[kept],
        target=graph.target[kept],
        confidence=graph.confidence[kept],
        retrieval_count=graph.retrieval_count[kept],
        valid_from=graph.valid_from[kept],
        inferred=graph.inferred[kept],
    )


# Sources ------------------------------------------------------------------------------------------


_MOST_SOURCES = 20  # newest sources of a fact that are read


@dataclass(frozen=True, slots=True)
class Sources:
    """Sources of some facts: episodes that state them, and premises of inferred ones.

    Attributes
    ----------
    episodes
        The episodes that state the facts and the premises, by id; of each the newest 20, and the others if these aren't
        trusted.
    premises
        The premises of the inferred facts, and the premises of these, by id.
    """

    episodes: Mapping[str, Episode]
    premises: Mapping[str, Edge]

    def expired(self, now: datetime) -> set[str]:
        """Return the ids of the episodes that have expired."""
        return {i for i, episode in self.episodes.items() if is_expired(episode.expires_at, now)}

    def trust(self, fact: Fact) -> Trust:
        """Return the trust of the best source; of an inferred fact, the lowest of its stated premises.

        A stated fact without sources is trusted: the caller stated it.
        """
        return lowest_trust(
            best_trust([trust_of(self.episodes[i]) for i in each.episode_ids if i in self.episodes])
            for each in stated_basis(fact, self.premises)
        )

    def named_by(self, fact: Fact) -> tuple[Premise, ...]:
        """Return the premises that a fact names, for its result."""
        named = (self.premises[i] for i in _premise_ids(fact) if i in self.premises)
        return tuple(Premise(id=edge.id, fact=edge.fact) for edge in named)


def sources_of(backend: GraphBackend, scopes: Sequence[Scope], facts: Sequence[Fact]) -> Sources:
    """Return the sources of some facts; one round trip, one for each level of premises, and one for older sources."""
    inferred = (fact for fact in facts if fact.inferred_by is not None)
    premises = find_premises(backend, scopes, (i for fact in inferred for i in _premise_ids(fact)))
    stated = (*facts, *premises.values())
    ids = dict.fromkeys(i for fact in stated for i in fact.episode_ids[-_MOST_SOURCES:])
    episodes = backend.get_episodes(scopes, list(ids)) if ids else {}
    trusted = {i for i, episode in episodes.items() if trust_of(episode) == LEVELS[-1]}
    doubtful = (fact for fact in stated if trusted.isdisjoint(fact.episode_ids[-_MOST_SOURCES:]))
    if older := dict.fromkeys(i for fact in doubtful for i in fact.episode_ids[:-_MOST_SOURCES]):
        episodes = {**episodes, **backend.get_episodes(scopes, list(older))}
    return Sources(episodes, premises)


def unexpired(
    backend: GraphBackend, scopes: Sequence[Scope], facts: Sequence[Fact], sources: Sources, now: datetime
) -> list[Fact]:
    """Return the facts without those all of whose episodes, or all of those of a premise, have expired.

    If the newest sources of a fact have all expired, one round trip asks for its other ones.
    """
    expired = sources.expired(now)
    if not expired:
        return list(facts)
    rests_on = [stated_basis(fact, sources.premises) for fact in facts]
    doubtful = [each for basis in rests_on for each in basis if expired.issuperset(each.episode_ids[-_MOST_SOURCES:])]
    if older := tuple(dict.fromkeys(i for each in doubtful for i in each.episode_ids[:-_MOST_SOURCES])):
        expired.update(backend.find_episode_ids(scopes, EpisodeQuery(ids=older, expired_by=now)))
    return [
        fact
        for fact, basis in zip(facts, rests_on, strict=True)
        if not any(each.episode_ids and expired.issuperset(each.episode_ids) for each in basis)
    ]


def stated_basis(fact: Fact, premises: Mapping[str, Edge]) -> Sequence[Fact | Edge]:
    """Return the stated facts that a fact rests on: itself, or those that an inferred one follows from."""
    if fact.inferred_by is None:
        return [fact]
    found: dict[str, Edge] = {}
    missing = _premise_ids(fact)
    while missing:
        found.update((i, premises[i]) for i in missing if i in premises)
        missing = [i for edge in found.values() for i in edge.premises if i in premises and i not in found]
    return [edge for edge in found.values() if not edge.is_inferred]


def with_trust(facts: Sequence[Fact], sources: Sources, minimum: Trust = "untrusted") -> tuple[Fact, ...]:
    """Return the facts of at least some trust, each with its trust and, if it was inferred, its premises."""
    trusts: list[Trust] = [sources.trust(fact) for fact in facts]
    return tuple(
        fact
        if trust == fact.trust and fact.inferred_by is None
        else fact.changed(trust=trust, premises=sources.named_by(fact))
        for fact, trust in zip(facts, trusts, strict=True)
        if is_trusted(trust, minimum)
    )


def _premise_ids(fact: Fact) -> list[str]:
    return str(fact.properties.get(PREMISES, "")).split()


# Evidence -----------------------------------------------------------------------------------------


EVIDENCE = 4.0
"""Score that the best episode adds to a fact of confidence 1, before the words that they share with the question."""

_MOST_STATED = 2000  # facts that a recall reads of the best episodes; those of a long list may be thousands

REPEATED = 0.7
"""Factor of what an episode adds to each further fact that it states, so that one text doesn't fill a result."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The best episodes for a question.

    Attributes
    ----------
    episode_ids
        Best first.
    lists
        Those of `episode_ids` that are lists of ready-made facts. Such a list may cover many subjects, so only its
        facts that share a word with the question count.
    degraded
        Messages about parts of the search that were unavailable.
    confidence
        Calibrated probability that one of the ten best episodes answers the question, in [0, 1].
    unknown_asker
        Whether the question is about who asks it, and it isn't known who that is.
    asker
        Name of who asks, where the question is about that person and the search knows it.
    """

    episode_ids: Sequence[str] = ()
    lists: Collection[str] = ()
    degraded: tuple[str, ...] = ()
    confidence: float = 0.0
    unknown_asker: bool = False
    asker: str | None = None


FindEvidence = Callable[[Sequence[Scope], str, RecallOptions], Evidence]
"""Searches the episodes of scopes for a question, with the filters, the trust and the time of a recall's options."""


@dataclass(frozen=True, slots=True)
class StatedFacts:
    """Facts that the best episodes state.

    Attributes
    ----------
    edges, evidence
        The facts, best first, and what their episodes add to their scores, by id.
    rows
        Position of each fact in the arrays of `factors`, by id.
    factors
        Factors of the facts' scores that no walk decides.
    """

    edges: Mapping[str, Edge] = field(default_factory=dict[str, Edge])
    evidence: Mapping[str, float] = field(default_factory=dict[str, float])
    rows: Mapping[str, int] = field(default_factory=dict[str, int])
    factors: Mapping[str, Floats] = field(default_factory=dict[str, Floats])

    def parts(self, edge_id: str) -> ScoreParts:
        """Return the parts of the score of a fact that no seed leads to."""
        factors = {name: float(values[self.rows[edge_id]]) for name, values in self.factors.items()}
        return ScoreParts(seed=0.0, evidence=self.evidence[edge_id], **factors)


@in_span("graphmem.recall.facts")
def stated_facts(
    backend: GraphBackend,
    scopes: Sequence[Scope],
    query: str,
    evidence: Evidence,
    options: RecallOptions,
    ontology: Ontology,
    now: datetime,
) -> StatedFacts:
    """Return the facts that episodes state, those over without a successor included; one round trip, and one a scope.

    The evidence of a fact is ``4 / √rank`` of its best episode, times its effective confidence, its edge type's weight,
    its recency, its relevance, the factor of the past, and ``0.7 ** n`` after n better facts of that episode.

    Parameters
    ----------
    query, evidence
        The question, and the episodes that a search found for it.
    options, ontology, now
        As in `graphmem.recall.recall.recall`.
    """
    ids = evidence.episode_ids
    found = _facts_of_best(backend, scopes, ids)
    rank = {episode_id: position for position, episode_id in enumerate(ids, 1)}
    read = backend.get_edges(scopes, found).values() if found else ()
    # an erasure between the two reads may have taken the episode from a fact that others state as well
    stated_by = [e for e in read if not e.is_inferred and not rank.keys().isdisjoint(e.episode_ids)]
    followed = [e for e in stated_by if not options.edge_types or e.edge_type in options.edge_types]
    edges = [edge for edge in followed if _counts(edge, options, now)]
    edges += without_another_value(backend, scopes, followed, options)
    if not edges:
        return StatedFacts()
    shared = scoring.shared_words(
        query_words(query, short=True), [scoring.fact_text(edge.relation, edge.fact, ontology) for edge in edges]
    )
    over = [options.as_of is None and edge.valid_to is not None and edge.valid_to <= now for edge in edges]
    begins = np.array([edge.valid_from.timestamp() for edge in edges])
    factors = scoring.fact_factors(
        np.array([edge.confidence for edge in edges]),
        np.array([edge.retrieval_count for edge in edges]),
        [edge.edge_type for edge in edges],
        begins,
        np.array([past_factor(edge) if is_over else 1.0 for edge, is_over in zip(edges, over, strict=True)]),
        shared,
        now=now.timestamp(),
        decay_rate=options.temporal_decay_rate,
        text_weight=options.fact_text_weight,
    )
    best = [min((i for i in edge.episode_ids if i in rank), key=rank.__getitem__) for edge in edges]
    alone = np.array([EVIDENCE / rank[i] ** 0.5 for i in best]) * np.prod(list(factors.values()), axis=0)
    stated: Counter[str] = Counter()
    added: dict[str, float] = {}
    rows: dict[str, int] = {}
    order: list[int] = np.lexsort((-begins, -alone)).tolist()  # of equal ones the latest first
    for i in order:
        if shared[i] or best[i] not in evidence.lists:
            added[edges[i].id], rows[edges[i].id] = float(alone[i]) * REPEATED ** stated[best[i]], i
            stated[best[i]] += 1
    return StatedFacts({edge_id: edges[i] for edge_id, i in rows.items()}, added, rows, factors)


def _facts_of_best(backend: GraphBackend, scopes: Sequence[Scope], episode_ids: Sequence[str]) -> list[str]:
    """Return the ids of the facts of the best episodes; of fewer episodes, if they are more than a recall reads."""
    best = list(episode_ids)
    found: list[str] = []
    while best:
        found = [i for scope in scopes for i in backend.find_edges_of_episodes(scope, best)]
        if len(found) <= _MOST_STATED:
            break
        del best[len(best) // 2 :]
    return found[:_MOST_STATED]


def _counts(edge: Edge, options: RecallOptions, now: datetime) -> bool:
    """Return whether a recall with these options reads a fact as one that an episode states."""
    if options.is_ended(edge):
        return True
    if options.only_ended:
        return False
    times = (edge.valid_from, edge.valid_to, edge.recorded_at, edge.expired_at, edge.prior_valid_to)
    if is_visible(*times, options.as_of, now):
        return True
    return options.as_of is None and is_past(edge.valid_from, edge.valid_to, edge.superseded_by, now)
