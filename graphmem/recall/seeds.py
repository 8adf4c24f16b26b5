"""Where a recall starts: entities that the question names by words, aliases or meaning, scored (spec: seeds).

The stores only find candidates; they are scored here, so that every store ranks them alike.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from graphmem.models import AsOf, EntityHit, MembershipQuery, Scope
from graphmem.protocols import GraphBackend
from graphmem.recall.embeddings import EntityEmbeddings, nearest_entities
from graphmem.results import Seed
from graphmem.text.words import query_phrases, query_words, split_words

NAME_WEIGHT = 10.0
"""Weight of a match in the name against one in the summary."""

_DEGREE_SHARE, _TYPES_SHARE, _ALL_TYPES = 0.6, 0.4, 4


def score_seeds(
    hits: Sequence[EntityHit],
    words: Sequence[str],
    cosines: Mapping[str, float] | None = None,
    *,
    structural_weight: float,
    limit: int,
) -> list[Seed]:
    """Score candidates by text and by how connected they are.

    Parameters
    ----------
    hits
        Candidates, each once.
    words
        Words of the question.
    cosines
        Entity id → how near its meaning is to the question's; counts where it is higher than the score by text.
    structural_weight
        w in ``score = text × (1 − w) + structural × w``, with ``structural = 0.6 × degree / highest degree +
        0.4 × min(distinct edge types / 4, 1)``.
    limit
        At most so many.

    Returns
    -------
    list of Seed
        Best first; by id among equals.
    """
    near = cosines or {}
    text = [max(t, near.get(hit.entity.id, 0.0)) for hit, t in zip(hits, _text_scores(hits, words), strict=True)]
    top_degree = max((hit.degree for hit in hits), default=0) or 1
    seeds: list[Seed] = []
    for hit, t in zip(hits, text, strict=True):
        structural = _DEGREE_SHARE * hit.degree / top_degree + _TYPES_SHARE * min(hit.edge_types / _ALL_TYPES, 1.0)
        score = t * (1 - structural_weight) + structural * structural_weight
        entity = hit.entity
        seeds.append(
            Seed(
                entity_id=entity.id,
                name=entity.name,
                entity_type=entity.entity_type,
                score=score,
                text=t,
                structural=structural,
            )
        )
    return sorted((s for s in seeds if s.text > 0), key=lambda s: (-s.score, s.entity_id))[:limit]


def capped(seeds: Sequence[Seed], community_of: Mapping[str, str], *, cap: int, limit: int) -> list[Seed]:
    """Return the first `limit` seeds of which at most `cap` are in one community; those in none aren't counted.

    Parameters
    ----------
    seeds
        Best first.
    community_of
        Entity id → id of its community; entities without one are left out.
    cap
        At least 1, so that a community always keeps its best seed.
    limit
        At most so many.
    """
    taken: Counter[str] = Counter()
    kept: list[Seed] = []
    for seed in seeds:
        community = community_of.get(seed.entity_id)
        if community is not None:
            taken[community] += 1
            if taken[community] > cap:
                continue
        kept.append(seed)
    return kept[:limit]


def _text_scores(hits: Sequence[EntityHit], words: Sequence[str]) -> list[float]:
    """Full text and aliases, each divided by its best, merged by the higher of the two."""
    full_text = _full_text_scores(hits, words)
    aliases = [float(len(hit.alias.split())) if hit.alias is not None else 0.0 for hit in hits]
    best_text, best_alias = max(full_text, default=0.0) or 1.0, max(aliases, default=0.0) or 1.0
    return [max(f / best_text, a / best_alias) for f, a in zip(full_text, aliases, strict=True)]


def _full_text_scores(hits: Sequence[EntityHit], words: Sequence[str]) -> list[float]:
    """How well words match names and summaries, rare words counting more; a prefix counts by its share."""
    names = [split_words(hit.entity.name) for hit in hits]
    summaries = [split_words(hit.entity.summary) for hit in hits]
    matches = [
        [(NAME_WEIGHT * _match(word, name) / math.sqrt(len(name) or 1) + _match(word, summary)) for word in words]
        for name, summary in zip(names, summaries, strict=True)
    ]
    df = Counter(i for row in matches for i, value in enumerate(row) if value)
    idf = [math.log(1 + len(hits) / df[i]) if df[i] else 0.0 for i in range(len(words))]
    return [sum(w * value for w, value in zip(idf, row, strict=True)) for row in matches]


def _match(word: str, tokens: Sequence[str]) -> float:
    return max((len(word) / len(token) for token in tokens if token.startswith(word)), default=0.0)


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
    meaning: EntityEmbeddings | None = None,
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
