"""Search over communities by words, names and centroids."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

import numpy as np

from graphmem.communities.results import FoundCommunity, Member
from graphmem.embed import Embedder
from graphmem.errors import EmbeddingFailed
from graphmem.index.copies import Copies
from graphmem.index.stored_vectors import unpacked
from graphmem.models import AsOf, Community, CommunityQuery, MembershipQuery, Scope, text_is_of
from graphmem.models.arrays import Float32s, Float64s
from graphmem.process import one_blas_thread
from graphmem.protocols import GraphBackend
from graphmem.recall.routing import is_global, narrowed
from graphmem.text.normalize import query_phrases, query_words
from graphmem.text.terms import stem, terms

_VECTORS = 2_000  # vectors of members in a page
_MEMORY = 50_000_000  # bytes of centroids: 30,000 communities with vectors of 384 numbers

_CentroidsKey = tuple[tuple[Scope, ...], str, tuple[int, ...], int]
_NAME = 3.0  # weight of a word in a name relative to a summary
_CANDIDATES = 50  # maximum entities matched by a question
_MEANING = 0.5  # weight of the centroids in the score, if there are vectors
_LEAST = 0.2  # minimum cosine with a centroid; unrelated texts reach about this value
_OVERVIEW = 20  # maximum communities in the answer to a question about everything
_PAGE = 10_000


class Centroids:
    """Cache of unit vectors of communities, computed on demand and invalidated by changes of the communities.

    Member vectors are read in pages; one vector per community is kept in memory.

    Parameters
    ----------
    backend
        The store.
    """

    def __init__(self, backend: GraphBackend) -> None:
        self._backend = backend
        self._kept: Copies[_CentroidsKey, Float32s] = Copies(lambda centroids: centroids.nbytes, _MEMORY)
        self._lock = threading.Lock()

    def of(
        self,
        scopes: Sequence[Scope],
        embedder: Embedder,
        communities: Sequence[Community],
        members: Mapping[str, Sequence[str]],
    ) -> Float32s | None:
        """Return the centroids, float32 (k, d), zero rows for communities without vectors; None if none has any.

        Parameters
        ----------
        scopes
            Scopes of the communities.
        embedder
            The embedding model; scopes indexed with another model are skipped.
        communities
            k communities.
        members
            Community id → ids of its members.
        """
        model = embedder.model_name
        states = [self._backend.index_state(scope) for scope in scopes]
        if not any(state.model == model for state in states):
            return None
        generations = tuple(state.generation for state in states)
        rows = tuple((c.id, c.updated_at, tuple(members.get(c.id, ()))) for c in communities)
        key: _CentroidsKey = (tuple(scopes), model, generations, hash(rows))
        with self._lock:
            if (kept := self._kept.get(key)) is not None:
                return kept
        indexed = [scope for scope, state in zip(scopes, states, strict=True) if state.model == model]
        made = self._made(indexed, embedder.dimension, communities, members)
        if made is not None:
            with self._lock:
                self._kept.put(key, made)
        return made

    @property
    def scopes(self) -> list[Scope]:
        """Scopes with vectors in memory."""
        with self._lock:
            return list(dict.fromkeys(scope for key in self._kept.cached_keys() for scope in key[0]))

    def drop_copies(self, scope: Scope) -> None:
        """Drop the cached centroids of a scope."""
        with self._lock:
            self._kept.drop(lambda key: scope in key[0])

    def _made(
        self,
        scopes: Sequence[Scope],
        dimension: int,
        communities: Sequence[Community],
        members: Mapping[str, Sequence[str]],
    ) -> Float32s | None:
        rows_of: dict[str, list[int]] = {}
        for row, community in enumerate(communities):
            for entity_id in members.get(community.id, ()):
                rows_of.setdefault(entity_id, []).append(row)
        total: Float32s | None = None
        for scope in scopes:
            for entry in self._backend.all_entries(scope, kind="entity", chunk=_VECTORS):
                if entry.vectors and (rows := rows_of.get(entry.key)):
                    [vector] = unpacked(entry, dimension)
                    if total is None:
                        total = np.zeros((len(communities), dimension), np.float32)
                    total[rows] += vector
        if total is None:
            return None
        length = np.linalg.norm(total, axis=1, keepdims=True)
        total /= np.where(length == 0.0, 1.0, length)
        return total


class CommunitySearch:
    """Search over communities.

    Parameters
    ----------
    backend
        The store.
    embedder
        The embedding model; None searches by words only.
    centroids
        Mean vectors of communities.
    """

    def __init__(self, backend: GraphBackend, embedder: Embedder | None, centroids: Centroids) -> None:
        self._backend = backend
        self._embedder = embedder
        self._centroids = centroids

    def find(
        self,
        scopes: Sequence[Scope],
        query: str | None,
        wanted: CommunityQuery,
        *,
        limit: int,
        only_unchanged: bool = False,
    ) -> list[FoundCommunity]:
        """Return communities with their members that match a question, best first; without a question, the largest.

        Parameters
        ----------
        scopes
            Scopes to search.
        query
            Optional question.
        wanted
            Communities to search; ended ones have their last members.
        limit
            Maximum number of communities.
        only_unchanged
            Leave out those that have changed since the `as_of` of `wanted`.
        """
        found = self._backend.all_communities(scopes, wanted)
        communities = {c.id: c for c in found if not only_unchanged or text_is_of(c.updated_at, wanted.as_of)}
        members = self._member_ids(scopes, communities, wanted)
        if query is None:
            order = sorted(communities.values(), key=lambda c: (-len(members.get(c.id, ())), c.id))
            scored: list[tuple[Community, float | None]] = [(c, None) for c in order[:limit]]
        else:
            scored = [*self._scored(scopes, query, list(communities.values()), members)[:limit]]
        return self._shown(scopes, scored, members)

    def overview(self, scopes: Sequence[Scope], question: str, as_of: AsOf | None) -> list[FoundCommunity]:
        """Return the communities that answer a question about everything; none for another question.

        With `as_of`, those that have changed since are left out: their texts may tell what was learned later.
        """
        if not is_global(question):
            return []
        wanted, topic = CommunityQuery(level=0, as_of=as_of), narrowed(question)
        find = partial(self.find, scopes, wanted=wanted, limit=_OVERVIEW, only_unchanged=True)
        return (find(topic) if topic else []) or find(None)

    def _member_ids(
        self, scopes: Sequence[Scope], communities: Mapping[str, Community], wanted: CommunityQuery
    ) -> dict[str, list[str]]:
        """Return the members of each community; for an ended community those at its end."""
        found: dict[str, list[str]] = {}
        as_of = wanted.as_of
        query = MembershipQuery(community_ids=wanted.ids, level=wanted.level, as_of=as_of, ended=wanted.ended)
        for membership in self._backend.all_memberships(scopes, query, chunk=_PAGE):
            community = communities.get(membership.community_id)
            if community is not None and (membership.until is None or _at_the_end(membership.until, community, as_of)):
                of_community = found.setdefault(community.id, [])
                if not of_community or of_community[-1] != membership.entity_id:
                    of_community.append(membership.entity_id)
        return found

    def _scored(
        self, scopes: Sequence[Scope], query: str, communities: Sequence[Community], members: Mapping[str, list[str]]
    ) -> list[tuple[Community, float]]:
        words = _word_scores(query, communities) + self._named(scopes, query, communities, members)
        score = words / (float(words.max(initial=0.0)) or 1.0)
        if (cosines := self._cosines(scopes, query, communities, members)) is not None:
            score = (1 - _MEANING) * score + _MEANING * np.where(cosines >= _LEAST, cosines, 0.0)
        order = sorted(range(len(communities)), key=lambda i: (-score[i], communities[i].id))
        return [(communities[i], float(score[i])) for i in order if score[i] > 0]

    def _named(
        self, scopes: Sequence[Scope], query: str, communities: Sequence[Community], members: Mapping[str, list[str]]
    ) -> Float64s:
        """Return the weighted number of entities in the question per community; fewer matched entities weigh more."""
        words, phrases = query_words(query), query_phrases(query)
        if not words and not phrases:
            return np.zeros(len(communities))
        hits = self._backend.search_entities(scopes, words=words, phrases=phrases, limit=_CANDIDATES)
        weight = {hit.entity.id: 1.0 if hit.alias is not None else 0.5 for hit in hits}
        share = math.log(1 + len(communities)) / (1.0 + len(weight))
        totals = [sum(weight.get(i, 0.0) for i in members.get(c.id, ())) for c in communities]
        return share * np.array(totals, dtype=np.float64)

    @one_blas_thread
    def _cosines(
        self, scopes: Sequence[Scope], query: str, communities: Sequence[Community], members: Mapping[str, list[str]]
    ) -> Float64s | None:
        if self._embedder is None or not communities:
            return None
        try:
            centroids = self._centroids.of(scopes, self._embedder, communities, members)
            return None if centroids is None else (centroids @ self._embedder.vector(query)).astype(np.float64)
        except EmbeddingFailed:
            return None  # fall back to words

    def _shown(
        self,
        scopes: Sequence[Scope],
        scored: Sequence[tuple[Community, float | None]],
        members: Mapping[str, list[str]],
    ) -> list[FoundCommunity]:
        ids = list(dict.fromkeys(i for c, _ in scored for i in members.get(c.id, ())))
        entities = self._backend.get_entities(scopes, ids) if ids else {}
        return [
            FoundCommunity(
                **community.model_dump(exclude={"scope"}),
                members=tuple(
                    Member(id=i, name=entities[i].name, entity_type=entities[i].entity_type)
                    for i in members.get(community.id, ())
                    if i in entities
                ),
                score=score,
            )
            for community, score in scored
        ]


def _at_the_end(until: datetime, community: Community, as_of: AsOf | None) -> bool:
    """Return whether an ended membership lasted until the end of the community, or was active at `as_of`."""
    return until == community.ended_at or (as_of is not None and until > min(as_of.valid, as_of.known))


def _word_scores(query: str, communities: Sequence[Community]) -> Float64s:
    """Return the IDF-weighted matches of a question's words in names and summaries, shape (k,)."""
    asked = list(dict.fromkeys(stem(word) for word in query_words(query)))
    has = np.zeros((len(communities), len(asked)))
    for row, community in zip(has, communities, strict=True):
        in_name, in_summary = set(terms(community.name)), set(terms(community.summary))
        row[:] = [_NAME * (word in in_name) + (word in in_summary) for word in asked]
    seen = (has > 0).sum(axis=0)
    idf = np.where(seen > 0, np.log1p(len(communities) / np.maximum(seen, 1)), 0.0)
    return has @ idf if len(asked) else np.zeros(len(communities))
