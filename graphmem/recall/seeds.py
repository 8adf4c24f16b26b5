"""Seeds of a recall: entities that match the question by words, aliases or vectors, scored.

Stores only return candidates; scoring them here gives the same ranking for every store.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from graphmem.models import AsOf, Entity, EntityHit, EntityQuery, MembershipQuery, Scope
from graphmem.protocols import NAME_WEIGHT, GraphBackend
from graphmem.recall.entity_embeddings import EntityEmbeddings, nearest_entities
from graphmem.recall.scoring import is_whole
from graphmem.results import Seed
from graphmem.telemetry import in_span
from graphmem.text.normalize import query_phrases, query_words, split_words

_DEGREE_SHARE, _TYPES_SHARE, _ALL_TYPES = 0.6, 0.4, 4
_NAMELESS = 0.5  # factor of the text score of an entity that shares words only with the full name of another one


def score_seeds(
    hits: Sequence[EntityHit],
    words: Sequence[str],
    cosines: Mapping[str, float] | None = None,
    *,
    structural_weight: float,
    limit: int,
) -> list[Seed]:
    """Score candidates by text match and connectivity.

    Parameters
    ----------
    hits
        Candidates, each once.
    words
        Words of the question.
    cosines
        Entity id → cosine of its vector and the question's; used if higher than the text score.
    structural_weight
        w in ``score = text × (1 − w) + structural × w``, with ``structural = 0.6 × degree / highest degree +
        0.4 × min(distinct edge types / 4, 1)``.
    limit
        Maximum number of seeds.

    Returns
    -------
    list of Seed
        Best first; ties are ordered by id.
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
    """Return the first `limit` seeds with at most `cap` per community; seeds without a community are not capped.

    Parameters
    ----------
    seeds
        Best first.
    community_of
        Entity id → id of its community; entities without one are absent.
    cap
        At least 1, so that a community always keeps its best seed.
    limit
        Maximum number of seeds.
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
    """Return the higher of the full-text and the alias score, each divided by its maximum."""
    full_text = _full_text_scores(hits, words)
    aliases = [float(len(hit.alias.split())) if hit.alias is not None else 0.0 for hit in hits]
    best_text, best_alias = max(full_text, default=0.0) or 1.0, max(aliases, default=0.0) or 1.0
    return [max(f / best_text, a / best_alias) for f, a in zip(full_text, aliases, strict=True)]


def _full_text_scores(hits: Sequence[EntityHit], words: Sequence[str]) -> list[float]:
    """Return the IDF-weighted matches of words in names and summaries; a prefix counts by its share of the word.

    Where the question has a full name of several words, its words count half for other entities: "Anna Holm" isn't
    meant by "Anna Berg".
    """
    names = [split_words(hit.entity.name) for hit in hits]
    summaries = [split_words(hit.entity.summary) for hit in hits]
    matches = [
        [(NAME_WEIGHT * _match(word, name) / math.sqrt(len(name) or 1) + _match(word, summary)) for word in words]
        for name, summary in zip(names, summaries, strict=True)
    ]
    df = Counter(i for row in matches for i, value in enumerate(row) if value)
    idf = [math.log(1 + len(hits) / df[i]) if df[i] else 0.0 for i in range(len(words))]
    scores = [sum(w * value for w, value in zip(idf, row, strict=True)) for row in matches]
    named = {word for hit in hits if hit.alias and " " in hit.alias for word in split_words(hit.alias)}
    if not named:
        return scores
    others = [i for i, word in enumerate(words) if word not in named]
    return [
        score if (hit.alias and " " in hit.alias) or any(row[i] for i in others) else score * _NAMELESS
        for hit, row, score in zip(hits, matches, scores, strict=True)
    ]


def _match(word: str, tokens: Sequence[str]) -> float:
    if is_whole(word):
        return float(word in tokens)
    return max((len(word) / len(token) for token in tokens if token.startswith(word)), default=0.0)


SeedMode = Literal["text", "hybrid"]

_CANDIDATES = 50
_FILTERED = 1000  # maximum candidates that are filtered by type or time


@in_span("graphmem.recall.seeds")
def find_seeds(
    backend: GraphBackend,
    scopes: Sequence[Scope],
    query: str,
    *,
    structural_weight: float,
    limit: int,
    community_cap: int = 0,
    as_of: AsOf | None = None,
    embeddings: EntityEmbeddings | None = None,
    mode: SeedMode = "text",
    candidates: int = _CANDIDATES,
) -> list[Seed]:
    """Find the entities that a question is about, best first, in a few round trips.

    Parameters
    ----------
    backend, scopes, query
        The store, the scopes to search, and the question.
    structural_weight
        As for `score_seeds`.
    limit
        Maximum number of seeds.
    community_cap
        Maximum number of seeds per community of level 0; 0 means no limit.
    as_of
        Time of the community memberships.
    embeddings
        Optional vectors to find entities by: with mode "text" only if words find nothing, with "hybrid" always.
    mode
        See `embeddings`.
    candidates
        Maximum number of candidates by words, by aliases and by vectors, each.
    """
    words, phrases = query_words(query), query_phrases(query)
    hits: list[EntityHit] = []
    if words or phrases:
        hits = backend.search_entities(scopes, words=words, phrases=phrases, limit=candidates)
    cosines: dict[str, float] = {}
    if embeddings is not None and (mode == "hybrid" or not hits):
        cosines = dict(nearest_entities(embeddings, scopes, query, candidates))
        hits += _hits_of(backend, scopes, cosines.keys() - {hit.entity.id for hit in hits})
    words = query_words(query, short=True)
    if not community_cap:
        return score_seeds(hits, words, cosines, structural_weight=structural_weight, limit=limit)
    seeds = score_seeds(hits, words, cosines, structural_weight=structural_weight, limit=len(hits))
    if len(seeds) <= community_cap:
        return seeds[:limit]
    members = MembershipQuery(entity_ids=tuple(seed.entity_id for seed in seeds), level=0, as_of=as_of)
    found = backend.find_memberships(scopes, members, limit=10 * candidates)
    community_of = {m.entity_id: m.community_id for m in found}
    return capped(seeds, community_of, cap=community_cap, limit=limit)


def find_named(
    backend: GraphBackend,
    scopes: Sequence[Scope],
    text: str,
    wanted: EntityQuery,
    *,
    structural_weight: float,
    limit: int,
) -> list[Entity]:
    """Return the entities that names or words in a text match and that a query selects, best first."""
    filtered = wanted.entity_types is not None or wanted.as_of is not None
    most = max(limit, _FILTERED) if filtered else limit
    seeds = find_seeds(backend, scopes, text, structural_weight=structural_weight, limit=most, candidates=most)
    query = replace(wanted, ids=tuple(seed.entity_id for seed in seeds))
    by_id = {entity.id: entity for entity in backend.find_entities(scopes, query, limit=max(1, most))}
    return [by_id[seed.entity_id] for seed in seeds if seed.entity_id in by_id][:limit]


def _hits_of(backend: GraphBackend, scopes: Sequence[Scope], entity_ids: set[str]) -> list[EntityHit]:
    """Return entities as hits with their connectivity, searched by their own canonical names."""
    if not entity_ids:
        return []
    names = {e.canonical_name for e in backend.get_entities(scopes, list(entity_ids)).values()}
    limit = 2 * len(names) * len(scopes) + len(entity_ids)  # a name may belong to an entity of each type and scope
    hits = backend.search_entities(scopes, words=(), phrases=sorted(names), limit=limit)
    return [replace(hit, alias=None) for hit in hits if hit.entity.id in entity_ids]
