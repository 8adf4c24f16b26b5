"""Evidence of a recall: the facts that the best episodes of a search state, and what that adds to their scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from graphmem.models import Edge, Scope, is_past, is_visible
from graphmem.ontology import Ontology
from graphmem.protocols import GraphBackend
from graphmem.recall import scoring
from graphmem.recall.options import RecallOptions
from graphmem.recall.past import PAST
from graphmem.results import ScoreParts
from graphmem.text.words import query_words

EVIDENCE = 4.0
"""Score that the best episode adds to a fact of confidence 1, before the words that they share with the question."""

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
        Those of `episode_ids` that are lists of ready-made facts, most of which may have nothing to do with the
        question: only facts that share a word with it count.
    degraded
        Messages about parts of the search that were unavailable.
    """

    episode_ids: Sequence[str] = ()
    lists: Collection[str] = ()
    degraded: tuple[str, ...] = ()


FindEvidence = Callable[[Sequence[Scope], str, RecallOptions], Evidence]
"""Searches the episodes of scopes for a question, with the filters, the trust and the time of a recall's options."""


@dataclass(frozen=True, slots=True)
class StatedFacts:
    """Facts that the best episodes state, by id, and the parts of the score of each."""

    edges: Mapping[str, Edge] = field(default_factory=dict[str, Edge])
    parts: Mapping[str, ScoreParts] = field(default_factory=dict[str, ScoreParts])


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
    found = [i for scope in scopes for i in backend.find_edges_of_episodes(scope, ids)] if ids else []
    edges = [edge for edge in backend.get_edges(scopes, found).values() if _counts(edge, options, now)] if found else []
    parts = _parts(edges, query, evidence, options, ontology, now) if edges else {}
    return StatedFacts({edge.id: edge for edge in edges if edge.id in parts}, parts)


def _counts(edge: Edge, options: RecallOptions, now: datetime) -> bool:
    """Return whether a recall with these options reads a fact."""
    if options.edge_types and edge.edge_type not in options.edge_types:
        return False
    times = (edge.valid_from, edge.valid_to, edge.recorded_at, edge.expired_at, edge.prior_valid_to)
    if is_visible(*times, options.as_of, now):
        return True
    return options.as_of is None and is_past(edge.valid_from, edge.valid_to, edge.superseded_by, now)


def _parts(
    edges: Sequence[Edge], query: str, evidence: Evidence, options: RecallOptions, ontology: Ontology, now: datetime
) -> dict[str, ScoreParts]:
    """Return the parts of the score of each fact that counts."""
    rank = {episode_id: position for position, episode_id in enumerate(evidence.episode_ids, 1)}
    best = [min((i for i in edge.episode_ids if i in rank), key=rank.__getitem__) for edge in edges]
    over = [options.as_of is None and edge.valid_to is not None and edge.valid_to <= now for edge in edges]
    shared = scoring.shared_words(query_words(query), [fact_text(e.relation, e.fact, ontology) for e in edges])
    factors = {
        "past": np.where(over, PAST, 1.0),
        "confidence": scoring.effective_confidence(
            np.array([edge.confidence for edge in edges]), np.array([edge.retrieval_count for edge in edges])
        ),
        "edge_type": scoring.flow_weight([edge.edge_type for edge in edges]),
        "recency": scoring.recency(
            np.array([edge.valid_from.timestamp() for edge in edges]), now.timestamp(), options.temporal_decay_rate
        ),
        "relevance": 1.0 + options.fact_text_weight * shared,
    }
    alone = np.array([EVIDENCE / rank[i] ** 0.5 for i in best]) * np.prod(list(factors.values()), axis=0)
    stated: Counter[str] = Counter()
    found: dict[str, ScoreParts] = {}
    order: list[int] = np.argsort(-alone, kind="stable").tolist()
    for i in order:
        if best[i] in evidence.lists and not shared[i]:
            continue
        of_edge = {name: float(values[i]) for name, values in factors.items()}
        found[edges[i].id] = ScoreParts(seed=0.0, evidence=float(alone[i]) * REPEATED ** stated[best[i]], **of_edge)
        stated[best[i]] += 1
    return found


def fact_text(relation: str, fact: str, ontology: Ontology) -> str:
    """Return the text of a fact that words of questions are looked for in: its relation in all words, its sentence."""
    return f"{relation} {ontology.words(relation)} {fact}"
