"""Traces of searches: which episodes came up and why, beside those of recalls (`graphmem.recall.trace`)."""

from __future__ import annotations

from datetime import datetime

from graphmem.models import RecallTrace, Scope, TracedEpisode, TracedSeed
from graphmem.protocols import GraphBackend
from graphmem.rag.found import SearchResults
from graphmem.text.normalise import canonical

CONSIDERED = 100
"""Episodes of a trace: those returned, then those next to them."""

STRATEGY = "search"


def search_trace(
    backend: GraphBackend, scope: Scope, results: SearchResults, k: int, asked_at: datetime
) -> RecallTrace:
    """Return the trace of a search of which the first k episodes are returned; one round trip for its seeds.

    The seeds are those names of the question that are entities; an episode's channel is the one that gives it most.
    """
    names = dict.fromkeys(canonical(seed) for seed in results.seeds)
    entities = dict.fromkeys(e.id for _, e in backend.resolve_names(scope, list(names))) if names else {}
    return RecallTrace(
        scope=scope,
        query=results.query,
        strategy=STRATEGY,
        asked_at=asked_at,
        as_of=results.as_of,
        seeds=tuple(TracedSeed(entity_id=entity_id, score=1.0) for entity_id in entities),
        episodes=tuple(
            TracedEpisode(
                episode_id=one.episode.id,
                score=one.score,
                channel=max(one.reasons, key=lambda reason: reason.score).channel if one.reasons else "lexical",
                rank=place if place <= k else None,
            )
            for place, one in enumerate(results, 1)
        ),
    )
