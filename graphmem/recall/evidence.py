"""Evidence of a recall: the best episodes of a search, and the facts that they state with their scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from graphmem.models import (
    Edge,
    Scope,
    is_past,
    is_visible,
)
from graphmem.models.arrays import Float64s
from graphmem.ontology import Ontology
from graphmem.protocols import GraphBackend
from graphmem.recall import scoring
from graphmem.recall.options import RecallOptions
from graphmem.recall.periods import asks_ahead, asks_end
from graphmem.recall.subgraph import is_ahead, past_factor, without_another_value
from graphmem.results import ScoreParts
from graphmem.telemetry import in_span
from graphmem.text.normalize import query_words

EVIDENCE_SCORE = 4.0
"""Score that the best episode adds to a fact of confidence 1, before the words that they share with the question."""

_MOST_STATED = 2000  # facts that a recall reads of the best episodes; those of a long list may be thousands

REPEATED_FACTOR = 0.7
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
    factors: Mapping[str, Float64s] = field(default_factory=dict[str, Float64s])

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
    its recency, its relevance, the factor of other times, and ``0.7 ** n`` after n better facts of that episode.

    Parameters
    ----------
    query, evidence
        The question, and the episodes that a search found for it.
    options, ontology, now
        The options, the ontology to apply, and the reference time of ages and expiry.
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
    ahead = {edge.id for edge in edges if is_ahead(edge, now)}
    if ahead and asks_ahead(query, now):
        ahead.clear()

    other = ahead if asks_end(query) else ahead | {e.id for e in edges if e.valid_to is not None and e.valid_to <= now}

    def factor(edge: Edge) -> float:
        return past_factor(edge) if options.as_of is None and edge.id in other else 1.0

    begins = np.array([edge.valid_from.timestamp() for edge in edges])
    factors = scoring.fact_factors(
        np.array([edge.confidence for edge in edges]),
        np.array([edge.retrieval_count for edge in edges]),
        [edge.edge_type for edge in edges],
        begins,
        np.array([factor(edge) for edge in edges]),
        shared,
        now=now.timestamp(),
        decay_rate=options.temporal_decay_rate,
        text_weight=options.fact_text_weight,
    )
    best = [min((i for i in edge.episode_ids if i in rank), key=rank.__getitem__) for edge in edges]
    alone = np.array([EVIDENCE_SCORE / rank[i] ** 0.5 for i in best]) * np.prod(list(factors.values()), axis=0)
    stated: Counter[str] = Counter()
    added: dict[str, float] = {}
    rows: dict[str, int] = {}
    order: list[int] = np.lexsort((-begins, -alone)).tolist()  # of equal ones the latest first
    for i in order:
        if shared[i] or best[i] not in evidence.lists:
            added[edges[i].id], rows[edges[i].id] = float(alone[i]) * REPEATED_FACTOR ** stated[best[i]], i
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
