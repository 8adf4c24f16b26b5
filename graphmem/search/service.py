"""`SearchService`: episode search with the reasons for each result."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from graphmem.embed import TokenVectors
from graphmem.errors import EmbeddingFailed, IndexMismatch, IndexUnavailable, StoreFull, StoreReadOnly
from graphmem.index.copies import MEMORY
from graphmem.index.encoder import EpisodeEncoder
from graphmem.models import AsOf, EpisodeQuery, RecallTrace, Scope, TracedEpisode, TracedSeed, is_live, utc_now
from graphmem.models.arrays import Float32s, Int64s
from graphmem.process import one_blas_thread
from graphmem.protocols import GraphBackend, VectorHit, VectorIndex
from graphmem.recall.evidence import Evidence
from graphmem.recall.options import RecallOptions, SpreadingOptions
from graphmem.recall.service import require_one_scope
from graphmem.recall.traces import RecallRecorder
from graphmem.search.baselines import Baseline, baseline
from graphmem.search.corpus import Corpus
from graphmem.search.pipeline import CANDIDATES, Ranking, rank
from graphmem.search.question import ParsedQuestion, parse_question
from graphmem.search.rerank import RERANKED, Reranker, reranked
from graphmem.search.results import Found, SearchOptions, SearchResults, evidence_of
from graphmem.search.search_index import SearchIndex
from graphmem.search.selection import RankedEpisode, in_order, ranked_episodes
from graphmem.search.speakers import USER, named_speaker
from graphmem.telemetry import count, in_span, question_attributes, span
from graphmem.text.first_person import first_person_of
from graphmem.text.normalize import MAX_QUERY, canonical
from graphmem.text.terms import terms
from graphmem.trust import USER as USER_NAME
from graphmem.trust import trust_of

CONSIDERED = 100
"""Episodes of a trace: the returned ones, then the next best."""

STRATEGY = "search"


def search_trace(
    backend: GraphBackend, scope: Scope, results: SearchResults, k: int, asked_at: datetime
) -> RecallTrace:
    """Return the trace of a search that returned the first k results; one round trip to resolve its seeds.

    The seeds are the names in the question that are entities; an episode's channel is the one with the highest score.
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


@dataclass(frozen=True, slots=True)
class _CorpusView:
    """The episodes that a search ranks: the first `size` of the corpus, all that it had when the search began."""

    corpus: Corpus
    size: int
    limited: bool
    lock: threading.RLock


@dataclass(frozen=True, slots=True)
class _Ranked:
    """The best episodes at a time, best first, and what a search says about them."""

    at: datetime
    degraded: list[str]
    rows: Sequence[RankedEpisode] = ()
    seeds: tuple[str, ...] = ()
    confidence: float = 0.0
    similarity: float = 0.0
    unknown_asker: bool = False
    asker: str | None = None


class SearchService:
    """Search over the episodes of a store.

    Parameters
    ----------
    backend
        The store.
    encoder
        Encoder of episodes and questions.
    spreading
        Limits of spreading activation, for searches that expand by it.
    vectors
        An external index for the vectors of sentences; None keeps them in memory.
    reranker
        Optional cross-encoder that reranks the top episodes; None disables reranking.
    redact
        Redacts a question before it is processed.
    wait
        Seconds that the search for a recall's evidence may spend on indexing stored rows.
    memory
        Maximum bytes of the copies of the index in memory.
    clock
        Returns the present, at which episodes have ended or expired.
    show_text
        Whether spans show questions and scopes.
    """

    def __init__(
        self,
        backend: GraphBackend,
        encoder: EpisodeEncoder,
        spreading: SpreadingOptions,
        vectors: VectorIndex | None = None,
        reranker: Reranker | None = None,
        *,
        redact: Callable[[str], str] | None = None,
        wait: float = 0.0,
        memory: int = MEMORY,
        clock: Callable[[], datetime] = utc_now,
        show_text: bool = False,
    ) -> None:
        self._backend = backend
        self._wait = wait
        self._encoder = encoder
        self._spreading = spreading
        self._reranker = reranker
        self._redact = redact
        self._clock = clock
        self._show_text = show_text
        self.index = SearchIndex(backend, encoder, vectors, memory)

    def search(self, scopes: Sequence[Scope], query: str, options: SearchOptions) -> SearchResults:
        """Return the episodes that answer a question, best first.

        Parameters
        ----------
        scopes
            Scopes to search.
        query
            The question; only the first 512 characters are used.
        options
            Options of the search.

        Raises
        ------
        IndexMismatch
            If the index was built with another embedding model.
        """
        query = (query if self._redact is None else self._redact(query))[:MAX_QUERY]
        shown = question_attributes(query, scopes, show_text=self._show_text)
        with span("graphmem.search", shown, duration="graph_search_duration_ms") as one:
            results = self._search(scopes, query, options)
            one.set({"graphmem.found": len(results), "graphmem.degraded": bool(results.degraded)})
        if results.degraded:
            count("graph_degraded_total", operation="search")
        return results

    def _search(self, scopes: Sequence[Scope], query: str, options: SearchOptions) -> SearchResults:
        ranked = self._ranked(scopes, query, options, self._reranker)
        episodes = self._backend.get_episodes(scopes, [row.episode_id for row in ranked.rows]) if ranked.rows else {}
        found = tuple(
            Found(
                episode=episode,
                score=row.score,
                reasons=row.reasons,
                confidence=row.confidence,
                trust=trust_of(episode),
            )
            for row in ranked.rows
            if (episode := episodes.get(row.episode_id)) is not None
            and is_live(episode.ended_at, episode.expires_at, options.as_of, ranked.at)
        )
        return SearchResults(
            query=query,
            found=found,
            as_of=options.as_of,
            degraded=tuple(ranked.degraded),
            seeds=ranked.seeds,
            confidence=ranked.confidence,
            similarity=ranked.similarity,
            unknown_asker=ranked.unknown_asker,
            asker=ranked.asker,
        )

    def evidence(self, scopes: Sequence[Scope], query: str, options: RecallOptions) -> Evidence:
        """Return the best episodes for the question of a recall that share a word, a fact, a name or a speaker with it.

        There are none for a question in the first person if it isn't known who asks, nor in an index of another
        embedding model, which is reported.
        """
        known = None if options.as_of is None else AsOf(known=options.as_of.known)
        wanted = SearchOptions(
            k=options.episodes,
            as_of=known,
            filters=options.filters,
            min_trust=options.min_trust,
            asked_by=options.asked_by,
            wait=self._wait,
        )
        try:
            ranked = self._ranked(scopes, query[:MAX_QUERY], wanted, None)
        except IndexMismatch as error:
            return Evidence(degraded=(str(error),))
        if ranked.unknown_asker:
            return Evidence(degraded=tuple(ranked.degraded), unknown_asker=True)
        rows = ranked.rows
        read = ((row.episode_id, row.reasons, row.is_list) for row in rows)
        sure, near = ranked.confidence, ranked.similarity
        return evidence_of(read, ranked.degraded, confidence=sure, similarity=near, asker=ranked.asker)

    @one_blas_thread
    def _ranked(
        self, scopes: Sequence[Scope], query: str, options: SearchOptions, reranker: Reranker | None
    ) -> _Ranked:
        """Return the best episodes as rows of the index.

        `rank` scores them, `in_order` leaves out what isn't to be found, and a reranker adds to the scores of the first
        ones. Then the scores are final: `ranked_episodes` only changes the order.
        """
        degraded, now = self._index_waiting(scopes, options.wait), self._clock()
        with self.index.copy(scopes) as copy:
            plain = any(map(str.isalnum, query))
            if not len(copy.corpus) or not (plain or copy.corpus.lexicon.with_all(terms(query), len(copy.corpus))):
                return _Ranked(now, degraded)  # nothing is like a question of punctuation or of unknown emoji
            view = _CorpusView(copy.corpus, len(copy.corpus), copy.limited, copy.lock)
            corpus, speakers = copy.corpus, copy.corpus.speakers
            at = now if options.as_of is None else min(options.as_of.valid, now)
            asked = parse_question(query, speakers, corpus.names, corpus.speaker_names.meant(speakers), now=at)
        among = self._among(scopes, view, options, now)
        if among is not None and not len(among):
            return _Ranked(now, degraded)
        tokens = self._tokens(asked.first_person, degraded)
        hits = None if tokens is None else self._sentence_hits(scopes, tokens.pooled, degraded)
        with view.lock:
            if among is None and len(corpus) > view.size:
                among = np.arange(view.size)
            sentence = None if hits is None or tokens is None else _sentences(hits, corpus, tokens.pooled, among)
            ranking = rank(corpus, asked, tokens, options, self._spreading, sentence=sentence, among=among)
            order = in_order(ranking.total, corpus, options, among)
            best = {corpus.ids[i]: i for i in order[:RERANKED]}
        if reranker is not None:
            order = self._reranked(reranker, scopes, query, best, order, ranking, degraded)
        unknown = self._unknown_asker(scopes, asked, corpus, options.asked_by)
        with view.lock:
            asker = _only_asker(asked, corpus) if options.asked_by is None and not unknown else None
            rows, seeds, confidence = ranked_episodes(corpus, asked, ranking, order, options)
            return _Ranked(now, degraded, rows, seeds, confidence, ranking.similarity, unknown, asker)

    def _unknown_asker(
        self, scopes: Sequence[Scope], asked: ParsedQuestion, corpus: Corpus, asked_by: str | None
    ) -> bool:
        """Return whether a question is about who asks, and who that is isn't known; a round trip for a given name."""
        if not _is_own(asked) or asked.speakers or corpus.has_assistant:
            return False
        if asked_by is None:  # "we" are those who speak
            return len(corpus.speakers) > 1 and first_person_of(asked.text) != "plural"
        if named_speaker(asked_by, corpus.speakers) is not None:
            return False
        return not any(self._backend.resolve_names(scope, [canonical(asked_by)]) for scope in scopes)

    def traced(
        self, scopes: Sequence[Scope], query: str, options: SearchOptions, recorder: RecallRecorder
    ) -> SearchResults:
        """Search one scope, and store a trace of the returned and the next best episodes."""
        scope, now = require_one_scope(scopes), self._clock()
        found = self.search(scopes, query, options.changed(considered=CONSIDERED))
        kept = search_trace(self._backend, scope, found, options.k, now)
        recorder.keep(kept)
        return found.changed(found=found.found[: options.k], trace_id=kept.id)

    @property
    def has_model(self) -> bool:
        """Whether there is an embedding model."""
        return self._encoder.embedder is not None

    def baseline(self, scopes: Sequence[Scope], query: str, by: Baseline, limit: int) -> list[str]:
        """Return the ids of episodes ranked by a baseline over the same index, for comparison with `search`.

        Raises
        ------
        EmbeddingFailed
            If the model fails.
        """
        query, embedder = query[:MAX_QUERY], self._encoder.embedder
        vector = None if embedder is None or by == "bm25" else embedder.vector(query)
        with self.index.copy(scopes) as copy:
            return [copy.corpus.ids[i] for i in baseline(copy.corpus, by, query, vector, limit)]

    @in_span("graphmem.search.index")
    def _index_waiting(self, scopes: Sequence[Scope], seconds: float) -> list[str]:
        degraded: list[str] = []
        deadline = time.monotonic() + seconds
        for scope in self.index.stale_scopes(scopes):
            try:
                if not self.index.index_waiting(scope, seconds=max(0.0, deadline - time.monotonic())):
                    degraded.append(f"scope {scope}: not all rows are indexed yet")
            except EmbeddingFailed as error:
                degraded.append(f"no vectors of new episodes: {error}")
            except IndexUnavailable as error:
                degraded.append(f"the vector index can't be brought up to date: {error}")
            except StoreReadOnly:
                degraded.append("rows that aren't indexed can't be found: the store is read-only")
            except StoreFull as error:
                degraded.append(f"rows that aren't indexed can't be found: {error}")
        return degraded

    @in_span("graphmem.search.question")
    def _tokens(self, question: str, degraded: list[str]) -> TokenVectors | None:
        embedder = self._encoder.embedder
        if embedder is None:
            return None
        try:
            if (read := embedder.token_vectors([question])) is not None:
                return read[0]
            whole = embedder.vector(question)
        except EmbeddingFailed as error:
            degraded.append(f"searched by words and graph only: {error}")
            return None
        none = np.empty((0, len(whole)), np.float32)
        return TokenVectors((), none, np.empty((0, 2), np.int64), whole)

    def _among(
        self, scopes: Sequence[Scope], view: _CorpusView, options: SearchOptions, now: datetime
    ) -> Int64s | None:
        """Return the positions of the episodes to rank, ascending, as the store selects them; None for all."""
        if options.filters is not None:
            live_at = now if view.limited else None
            query = EpisodeQuery(filters=options.filters, live_at=live_at, as_of=options.as_of if live_at else None)
            return self._positions(scopes, view, query)
        if not view.limited:
            return None
        hidden = self._positions(scopes, view, EpisodeQuery(hidden_at=now, as_of=options.as_of))
        return np.delete(np.arange(view.size), hidden) if len(hidden) else None

    def _positions(self, scopes: Sequence[Scope], view: _CorpusView, query: EpisodeQuery) -> Int64s:
        ids = self._backend.find_episode_ids(scopes, query)
        with view.lock:
            found = [view.corpus.position.get(i, view.size) for i in ids]
        return np.sort(np.array([i for i in found if i < view.size], dtype=np.int64))

    @in_span("graphmem.search.rerank")
    def _reranked(
        self,
        reranker: Reranker,
        scopes: Sequence[Scope],
        question: str,
        best: dict[str, int],
        order: list[int],
        ranking: Ranking,
        degraded: list[str],
    ) -> list[int]:
        """Return the order after adding the cross-encoder's scores to those of the best episodes, given by id."""
        episodes = self._backend.get_episodes(scopes, list(best))
        best = {i: position for i, position in best.items() if i in episodes}
        if not best:
            return order
        try:
            scores = reranker.scores(question, [episodes[i].searchable_text for i in best])
        except EmbeddingFailed as error:
            degraded.append(f"not reranked by the {error}")
            return order
        return reranked(ranking, order, list(best.values()), scores)

    def _sentence_hits(
        self, scopes: Sequence[Scope], question: Float32s, degraded: list[str]
    ) -> list[VectorHit] | None:
        """Return the episodes with the best sentences by the external index; None leaves it to the corpus."""
        if self.index.follower is None:
            return None
        try:
            return self.index.follower.index.search(scopes, "episode", question, limit=CANDIDATES)
        except IndexUnavailable as error:
            degraded.append(f"compared with whole episodes, vectors of sentences are unavailable: {error}")
            return None


def _sentences(hits: Sequence[VectorHit], corpus: Corpus, question: Float32s, among: Int64s | None) -> Float32s:
    """Return the cosine of each episode's best sentence, given those of the nearest `CANDIDATES` episodes.

    The others get the score of the last of them. If only some episodes are ranked, which may all be among the others,
    these get the cosine of the whole episode if that is lower.
    """
    rest = hits[-1].score if len(hits) == CANDIDATES else 0.0
    scores = np.full(len(corpus), rest, np.float32)
    if among is not None:
        scores = np.minimum(scores, corpus.best_sentence(question))
    for hit in hits:
        if (position := corpus.position.get(hit.key)) is not None:
            scores[position] = hit.score
    return scores


def _is_own(asked: ParsedQuestion) -> bool:
    """Return whether a question is about who asks it."""
    return asked.side == USER or first_person_of(asked.text) is not None


def _only_asker(asked: ParsedQuestion, corpus: Corpus) -> str | None:
    """Return the name of the only person who speaks, beside an assistant, for a question about who asks it."""
    if not _is_own(asked) or asked.speakers:
        return None
    who = corpus.speaker_of.rows
    heard = who[corpus.side_of.rows == USER] if corpus.has_assistant else who[who >= 0]
    if not len(heard) or heard.min() != heard.max():
        return None
    speaker = int(heard[0])
    return corpus.speakers[speaker] if speaker >= 0 else USER_NAME
