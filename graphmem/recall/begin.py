"""Finding the entities that a recall starts from: by words and aliases, and by meaning (spec: seeds)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from graphmem.models import AsOf, EntityHit, MembershipQuery, Scope
from graphmem.protocols import GraphBackend
from graphmem.recall.meaning import Meaning, nearest_entities
from graphmem.recall.seeds import capped, score_seeds
from graphmem.results import Seed
from graphmem.text.words import query_phrases, query_words

SeedMode = Literal["text", "hybrid"]

_CANDIDATES = 50


def find_seeds(
    backend: GraphBackend,
    scopes: Sequence[Scope],
    query: str,
    *,
    structural_weight: float,
    limit: int,
    community_cap: int = 0,
    as_of: AsOf | None = None,
    meaning: Meaning | None = None,
    mode: SeedMode = "text",
    candidates: int = _CANDIDATES,
) -> list[Seed]:
    """Find the entities that a question is about, best first; one round trip, or two.

    Parameters
    ----------
    backend, scopes, query
        What is asked, and where.
    structural_weight
        As for `score_seeds`.
    limit
        At most so many.
    community_cap
        At most so many of one community of level 0; 0 is no limit.
    as_of
        The moment of which the communities are taken.
    meaning
        Vectors, by which entities are found, too: with "text" only where words find nothing, with "hybrid" always.
    mode
        See `meaning`.
    candidates
        How many are found by words, as many by alias and as many by meaning, and scored.
    """
    words, phrases = query_words(query), query_phrases(query)
    hits: list[EntityHit] = []
    if words or phrases:
        hits = backend.search_entities(scopes, words=words, phrases=phrases, limit=candidates)
    cosines: dict[str, float] = {}
    if meaning is not None and (mode == "hybrid" or not hits):
        cosines = dict(nearest_entities(meaning, scopes, query, candidates))
        hits += _hits_of(backend, scopes, cosines.keys() - {hit.entity.id for hit in hits})
    if not community_cap:
        return score_seeds(hits, words, cosines, structural_weight=structural_weight, limit=limit)
    seeds = score_seeds(hits, words, cosines, structural_weight=structural_weight, limit=len(hits))
    if len(seeds) <= community_cap:
        return seeds[:limit]
    members = MembershipQuery(entity_ids=tuple(seed.entity_id for seed in seeds), level=0, as_of=as_of)
    found = backend.find_memberships(scopes, members, limit=10 * candidates)
    community_of = {m.entity_id: m.community_id for m in found}
    return capped(seeds, community_of, cap=community_cap, limit=limit)


def _hits_of(backend: GraphBackend, scopes: Sequence[Scope], entity_ids: set[str]) -> list[EntityHit]:
    """Return entities with how connected they are, as the search by their own names tells."""
    if not entity_ids:
        return []
    names = {e.canonical_name for e in backend.get_entities(scopes, list(entity_ids)).values()}
    hits = backend.search_entities(scopes, words=(), phrases=sorted(names), limit=2 * len(names))
    return [replace(hit, alias=None) for hit in hits if hit.entity.id in entity_ids]
