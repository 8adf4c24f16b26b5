"""Seeds of a recall: entities that match the question by words, aliases or vectors, scored.

Stores only return candidates; scoring them here gives the same ranking for every store.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from graphmem.embed import Embedder
from graphmem.index.entity_vectors import EntityVectors
from graphmem.index.stored_vectors import unpacked
from graphmem.models import AsOf, Entity, EntityHit, EntityQuery, MembershipQuery, Scope
from graphmem.models.arrays import Float32s, Float64s
from graphmem.protocols import NAME_WEIGHT, GraphBackend
from graphmem.recall.scoring import is_whole
from graphmem.results import Seed
from graphmem.telemetry import in_span
from graphmem.text import counted
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


# Embeddings ---------------------------------------------------------------------------------------


_log = logging.getLogger(__name__)

LEAST_COSINE = 0.35
"""Minimum cosine of an entity that is considered related to a question."""

Vectors = NDArray[np.floating]


class EntityEmbeddings(Protocol):
    """Source of vectors for recall."""

    def of_query(self, query: str) -> Vectors:
        """Return the vector of a question, shape (d,)."""
        ...

    def of_entities(self, scopes: Sequence[Scope], entity_ids: Sequence[str]) -> Vectors:
        """Return the vectors of n entities, shape (n, d); a zero row for an entity without one."""
        ...

    def nearest(self, scopes: Sequence[Scope], question: Vectors, limit: int) -> Sequence[tuple[str, float]]:
        """Return (entity id, cosine) of the entities nearest to a vector of shape (d,), best first."""
        ...


class StoredEntityEmbeddings(EntityEmbeddings):
    """Stored entity vectors ("name: summary", computed at ingestion), and question vectors by the model.

    Parameters
    ----------
    backend
        The store.
    embedder
        The model; scopes that were indexed with another model have no vectors.
    vectors
        All entity vectors, for nearest neighbor search.
    index_waiting
        Computes the missing vectors of a scope, for at most the given seconds.
    wait
        Seconds that a question may spend on computing missing vectors.
    """

    def __init__(
        self,
        backend: GraphBackend,
        embedder: Embedder,
        vectors: EntityVectors,
        index_waiting: Callable[[Scope, float], None],
        wait: float,
    ) -> None:
        self._backend = backend
        self._embedder = embedder
        self._vectors = vectors
        self._index_waiting = index_waiting
        self._wait = wait

    def of_query(self, query: str) -> Float32s:
        """Return the vector of a question, shape (d,)."""
        return self._embedder.vector(query)

    def of_entities(self, scopes: Sequence[Scope], entity_ids: Sequence[str]) -> Float32s:
        """Return the vectors of n entities, shape (n, d); a zero row for an entity without one."""
        dimension = self._embedder.dimension
        found = np.zeros((len(entity_ids), dimension), np.float32)
        rows = {entity_id: row for row, entity_id in enumerate(entity_ids)}
        for scope, _ in self._fitting(scopes):
            for entry in self._backend.find_index(scope, "entity", entity_ids):
                if entry.vectors:
                    found[rows[entry.key]] = unpacked(entry, dimension)[0]
        return found

    def nearest(self, scopes: Sequence[Scope], question: Float32s, limit: int) -> list[tuple[str, float]]:
        """Return (entity id, cosine) of the entities nearest to a vector of shape (d,), best first."""
        hits: list[tuple[float, str]] = []
        for scope, generation in self._fitting(scopes):
            hits += self._vectors.nearest_of_all(scope, generation, question, LEAST_COSINE, limit)
        best = sorted(hits, key=lambda hit: (-hit[0], hit[1]))[:limit]
        return [(entity_id, cosine) for cosine, entity_id in best]

    def _fitting(self, scopes: Sequence[Scope]) -> list[tuple[Scope, int]]:
        """Return the scopes that were indexed with this model, and their index generations."""
        for scope in scopes:
            self._index_waiting(scope, self._wait)
        states = [(scope, self._backend.index_state(scope)) for scope in scopes]
        return [(scope, state.generation) for scope, state in states if state.model == self._embedder.model_name]


def entity_vectors(
    embeddings: EntityEmbeddings | None, scopes: Sequence[Scope], entity_ids: Sequence[str]
) -> Float64s | None:
    """Return unit vectors of n entities, shape (n, d), zero rows for missing ones; None if unavailable."""
    if embeddings is None:
        return None
    try:
        return _unit(embeddings.of_entities(scopes, entity_ids), rows=len(entity_ids))
    except Exception as error:  # noqa: BLE001 - a model or an index may raise anything; recall continues without
        _log.debug("no vectors of entities: %s: %s", type(error).__name__, error)
        return None


def query_cosines(
    embeddings: EntityEmbeddings | None, scopes: Sequence[Scope], query: str, entity_ids: Sequence[str]
) -> Float64s | None:
    """Return the cosine of a question and each of n entities, shape (n,); None on failure.

    The question is embedded once. The value of an entity without a vector is NaN.
    """
    if embeddings is None or (vectors := entity_vectors(embeddings, scopes, entity_ids)) is None:
        return None
    try:
        [question] = _unit(np.atleast_2d(embeddings.of_query(query)), rows=1)
        return np.where(np.any(vectors != 0.0, axis=1), vectors @ question, math.nan)
    except Exception as error:  # noqa: BLE001 - as above
        _log.debug("no vector of the question: %s: %s", type(error).__name__, error)
        return None


def nearest_entities(
    embeddings: EntityEmbeddings, scopes: Sequence[Scope], query: str, limit: int
) -> list[tuple[str, float]]:
    """Return (entity id, cosine) of the entities with the most similar vectors to a question; empty on failure."""
    try:
        found = embeddings.nearest(scopes, embeddings.of_query(query), limit)
        return [(entity_id, cosine) for entity_id, cosine in found if cosine >= LEAST_COSINE]
    except Exception as error:  # noqa: BLE001 - as above
        _log.debug("no entities by vectors: %s: %s", type(error).__name__, error)
        return []


def _unit(vectors: Vectors, *, rows: int) -> Float64s:
    found = np.asarray(vectors, dtype=np.float64)
    if found.ndim != 2 or len(found) != rows or not np.all(np.isfinite(found)):
        raise ValueError(f"{counted(rows, 'row')} of finite numbers were expected, got shape {found.shape}")
    length = np.linalg.norm(found, axis=1, keepdims=True)
    return found / np.where(length == 0.0, 1.0, length)
