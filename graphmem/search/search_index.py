"""Keeps the index of a store up to date, and its copy in memory: what waits is read, what was read is scored on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from graphmem.errors import EmbeddingFailed, IndexMismatch, InvalidInput
from graphmem.index.codec import detail_of, dimension_of, halves, unpacked, unpacked_pieces
from graphmem.index.copies import Copies, pages_after
from graphmem.index.encoder import EpisodeEncoder, StatedFact
from graphmem.index.follower import VectorFollower
from graphmem.models import Changes, Episode, EpisodeQuery, IndexCursor, IndexEntry, IndexKind, IndexState, Scope
from graphmem.protocols import GraphBackend, VectorIndex
from graphmem.search.corpus import Corpus, FactUnit, Unit, adds_words, spoken
from graphmem.search.question import first_person
from graphmem.text.words import terms

_PAGE = 1000
_BATCH = 64
_KINDS: tuple[IndexKind, ...] = ("episode", "fact")  # in this order
_STILL_COMING = 600.0  # seconds in which a row with an earlier id may be committed by somebody else
_COMING = 60.0  # seconds in which nearly all are
_FAR = 30.0  # seconds between looks as far back as any may come
_LAST = "~"  # behind every id


@dataclass(frozen=True, slots=True)
class _Seen:
    """When nothing waited at a look, and at one as far back as anything may come; seconds since 1970."""

    last: float
    far: float

    def is_old(self, now: float) -> bool:
        """Return whether it is time to look so far back again."""
        return now - self.far >= _FAR


@dataclass(slots=True)
class Snapshot:
    """What a question is scored on, and how far it was read."""

    corpus: Corpus
    states: dict[Scope, IndexState]
    positions: dict[Scope, int]
    lock: threading.RLock


class SearchIndex:
    """The index of one store.

    Parameters
    ----------
    backend
        The store, which holds the index.
    reader
        Makes its entries.
    vectors
        An index outside of the store, which then has the vectors of sentences in place of the copy.
    """

    def __init__(self, backend: GraphBackend, reader: EpisodeEncoder, vectors: VectorIndex | None = None) -> None:
        self.follower = None if vectors is None else VectorFollower(backend, vectors, lambda: reader.dimension)
        self._backend = backend
        self._reader = reader
        self._copies: Copies[tuple[Scope, ...], Snapshot] = Copies()
        self._indexed: dict[tuple[Scope, IndexKind], _Seen] = {}
        self._looked_at = 0.0  # by the clock of this machine, when it was looked for rows that wait
        self._generations: dict[Scope, int] = {}
        self._lock = threading.Lock()
        self._indexing = threading.Lock()

    # Writing ----------------------------------------------------------------------------------------

    def index_waiting(self, scope: Scope, *, seconds: float | None = None, limit: int | None = None) -> bool:
        """Read what waits in a scope: episodes first, then facts; return whether nothing waits any more.

        Parameters
        ----------
        scope
            Whose.
        seconds, limit
            After so much time, or so many rows, the rest is left for the next call.

        Raises
        ------
        EmbeddingFailed
            If the model fails; episodes can be found by their words nevertheless.
        IndexUnavailable
            If the vector index outside of the store can't be reached; the store's own index is up to date.
        """
        self._require_model(scope)
        deadline = None if seconds is None else time.monotonic() + seconds
        left = limit
        for kind in _KINDS:
            while done := self._index_batch(scope, kind, _BATCH if left is None else min(_BATCH, left)):
                left = None if left is None else left - done
                if left == 0 or (deadline is not None and time.monotonic() >= deadline):
                    return False
        if self.follower is None:
            return True
        return self.follower.sync(scope, seconds=None if deadline is None else max(0.0, deadline - time.monotonic()))

    def stale_scopes(self, scopes: Sequence[Scope]) -> list[Scope]:
        """Return the scopes for which `index_waiting` has something to do or to look at; in one round trip."""
        if self.follower is not None:
            return list(scopes)
        now = self._now()
        looks = [
            IndexCursor(scope, self._cursor(scope, "episode", now), self._cursor(scope, "fact", now))
            for scope in scopes
        ]
        found: list[Scope] = []
        for scope, news in zip(scopes, self._backend.index_status(looks), strict=True):
            is_known = self._generations.get(scope) == news.state.generation
            if news.waiting or not is_known or news.state.model not in (None, self._reader.model):
                found.append(scope)
            else:
                for kind in _KINDS:
                    self._settle(scope, kind, now)
        return found

    def _cursor(self, scope: Scope, kind: IndexKind, now: float) -> str:
        """Return the id behind which rows may wait; what comes late is looked for only now and then."""
        if (seen := self._indexed.get((scope, kind))) is None:
            return ""
        return _id_of(seen.far - _STILL_COMING if seen.is_old(now) else seen.last - _COMING)

    def _settle(self, scope: Scope, kind: IndexKind, now: float) -> None:
        """Note that nothing waited behind the cursor of this time."""
        seen = self._indexed.get((scope, kind))
        self._indexed[scope, kind] = _Seen(now, now if seen is None or seen.is_old(now) else seen.far)

    def _now(self) -> float:
        """Return the time; where the clock was set back, new rows may have ids below those that were indexed."""
        now = time.time()
        if now < self._looked_at:
            self._indexed.clear()
        self._looked_at = now
        return now

    def _index_batch(self, scope: Scope, kind: IndexKind, limit: int) -> int:
        """Index some of what waits; return how many rows that were."""
        if not self._waiting(scope, kind, 1):
            return 0
        with self._indexing:  # one batch at a time, looked up anew: two threads would read the same one
            waiting = self._waiting(scope, kind, limit)
            if waiting:
                self._index(scope, kind, waiting)
        return len(waiting)

    def _require_model(self, scope: Scope) -> None:
        """Refuse vectors of another model; an index without vectors is built anew when a model comes."""
        state = self._backend.index_state(scope)
        built = state.model
        if self._generations.get(scope) != state.generation:
            self._generations[scope] = state.generation
            self.reset_cursor(scope)  # entries were removed: rows that had some may have none
        if built is None or built == self._reader.model:
            return
        if built == "":
            self._backend.reset_index(scope)
        elif self._reader.model:
            raise IndexMismatch(
                f"scope {scope}: its index was built with the embedding model {built!r}, not with "
                f"{self._reader.model!r}; configure that one, or build the index anew: graphmem reindex"
            )

    def _waiting(self, scope: Scope, kind: IndexKind, limit: int) -> list[str]:
        """Return what waits, among the rows that aren't known to be indexed."""
        now = self._now()
        waiting = self._backend.find_unindexed(scope, kind, after=self._cursor(scope, kind, now), limit=limit)
        if not waiting:
            self._settle(scope, kind, now)
        return waiting

    def _index(self, scope: Scope, kind: IndexKind, ids: Sequence[str]) -> None:
        if not self._reader.model and (built := self._backend.index_state(scope).model):
            if kind == "episode":
                since = self._backend.erasure_token(scope)
                self._write_words_only(scope, self._with_earlier(scope, ids), since)
            raise EmbeddingFailed(f"scope {scope}: its index has vectors of {built!r}; now no model is configured")
        since = self._backend.erasure_token(scope)
        if kind == "fact":
            self._write(scope, self._reader.facts(self._stated(scope, ids)), since)
            return
        episodes = self._with_earlier(scope, ids)
        try:
            entries = self._reader.episodes(episodes)
            names = self._reader.names_of(entries)
            known = {entry.key for entry in self._backend.find_index(scope, "name", names)} if names else set[str]()
            entries += self._reader.names([name for name in names if name not in known])
        except EmbeddingFailed:
            self._write_words_only(scope, episodes, since)
            raise
        self._write(scope, entries, since)

    def _write(self, scope: Scope, entries: Sequence[IndexEntry], since: str) -> None:
        """Write entries, unless what they were made of may be gone: then it waits, and is read anew."""
        try:
            self._backend.write_unless_erased(scope, Changes(index=tuple(entries)), since=since)
        except InvalidInput:
            if self._all_there(scope, entries):
                raise

    def _all_there(self, scope: Scope, entries: Sequence[IndexEntry]) -> bool:
        episodes, facts = ([entry.key for entry in entries if entry.kind == kind] for kind in _KINDS)
        there = {**self._backend.get_episodes([scope], episodes), **self._backend.get_edges([scope], facts)}
        return len(there) == len(episodes) + len(facts)

    def _stated(self, scope: Scope, ids: Sequence[str]) -> list[StatedFact]:
        """Return facts as their episodes state them, with those to which they add words."""
        edges = self._backend.get_edges([scope], ids)
        named = dict.fromkeys(i for edge in edges.values() for i in edge.episode_ids)
        episodes = {
            i: episode
            for i, episode in self._backend.get_episodes([scope], list(named)).items()
            if episode.source != "triple"
        }
        own = {i: frozenset(terms(spoken(episode))) for i, episode in episodes.items()}
        facts: list[StatedFact] = []
        for edge in edges.values():
            told = [i for i in edge.episode_ids if i in episodes]
            text = first_person(edge.fact, [who for i in told[:1] if (who := episodes[i].speaker)])
            stated = terms(text)
            gaining = tuple(i for i in told if adds_words(stated, own[i].__contains__))
            facts.append(StatedFact(edge.id, text, gaining))
        return facts

    def _write_words_only(self, scope: Scope, episodes: Sequence[tuple[Episode, Episode | None]], since: str) -> None:
        known = {entry.key for entry in self._backend.find_index(scope, "episode", [e.id for e, _ in episodes])}
        new = [pair for pair in episodes if pair[0].id not in known]
        entries = self._reader.words_only(new)
        self._write(scope, [replace(entry, complete=False) for entry in entries], since)

    def _with_earlier(self, scope: Scope, ids: Sequence[str]) -> list[tuple[Episode, Episode | None]]:
        """Return episodes, each with the one before it in its session."""
        found = self._backend.get_episodes([scope], ids)
        episodes = [found[i] for i in sorted(found)]
        last: dict[str, Episode] = {}
        pairs: list[tuple[Episode, Episode | None]] = []
        for episode in episodes:
            earlier = None
            if (session := episode.session_id) is not None:
                earlier = last.get(session) or self._before(scope, episode)
                last[session] = episode
            pairs.append((episode, earlier))
        return pairs

    def _before(self, scope: Scope, episode: Episode) -> Episode | None:
        query = EpisodeQuery(session_id=episode.session_id, before=episode.id)
        return next(iter(self._backend.find_episodes([scope], query, limit=1, newest_first=True)), None)

    def reset_cursor(self, scope: Scope) -> None:
        """Look through all rows of a scope for some that wait: there may be new ones with ids of long ago."""
        for kind in _KINDS:
            self._indexed.pop((scope, kind), None)

    # Reading ----------------------------------------------------------------------------------------

    def rebuild(self, scope: Scope, on_progress: Callable[[int], None] | None = None) -> int:
        """Build the index of a scope anew; `on_progress` gets the rows indexed so far, which are returned in the end.

        Killed in the middle, it goes on where it was with the next `index_waiting`: the old index is gone at once.
        """
        self._backend.reset_index(scope)
        if self.follower is not None:
            self.follower.restart(scope)
        self.reset_cursor(scope)
        done = 0
        for kind in _KINDS:
            while indexed := self._index_batch(scope, kind, _BATCH):
                done += indexed
                if self.follower is not None:
                    self.follower.sync(scope)
                if on_progress is not None:
                    on_progress(done)
        return done

    def forget(self, scope: Scope, keys: Sequence[tuple[IndexKind, str]] | None) -> None:
        """Drop what memory and the index outside of the store hold of rows that are gone.

        Parameters
        ----------
        scope
            Whose rows.
        keys
            What they were; None means all of the scope.

        Raises
        ------
        IndexUnavailable
            If the index outside of the store can't be reached; it is emptied when it is brought up to date next.
        """
        with self._lock:
            self._copies.drop(lambda scopes: scope in scopes)
        self._reader.forget()
        if self.follower is not None:
            self.follower.forget(scope, keys)

    @contextmanager
    def copy(self, scopes: Sequence[Scope]) -> Generator[Snapshot]:
        """Give the copy of some scopes, as new as the store, to one thread at a time."""
        key = tuple(scopes)
        with self._lock:
            copy = self._copies.put(key, self._copies.get(key) or self._empty(key))
        with copy.lock:
            self._refresh(copy, key)
            yield copy

    def _empty(self, scopes: Sequence[Scope]) -> Snapshot:
        corpus = Corpus(self._dimension(scopes), sentences=self.follower is None)
        return Snapshot(corpus, {}, {}, threading.RLock())

    def _dimension(self, scopes: Sequence[Scope]) -> int:
        """Return that of the model; while it can't be asked, that of vectors it has made, or 0 where there are none."""
        try:
            return self._reader.dimension
        except EmbeddingFailed:
            pages = (self._backend.read_index(scope, after=0, limit=_PAGE) for scope in scopes)
            return next((found for page in pages for entry in page if (found := dimension_of(entry))), 0)

    def _refresh(self, copy: Snapshot, scopes: Sequence[Scope]) -> None:
        looks = [IndexCursor(scope, _LAST, _LAST, copy.positions.get(scope, 0)) for scope in scopes]
        news = dict(zip(scopes, self._backend.index_status(looks), strict=True))
        states = {scope: told.state for scope, told in news.items()}
        fresh = self._news(copy, [scope for scope, told in news.items() if told.entries])
        removed = any(copy.states.get(scope, state).generation != state.generation for scope, state in states.items())
        removed |= not copy.corpus.has_vectors and bool(self._reader.model) and self._dimension(scopes) > 0
        if removed or any(key in copy.corpus.position for key in fresh["episode"]):
            emptied = self._empty(scopes)
            copy.corpus, copy.positions = emptied.corpus, {}
            fresh = self._news(copy, scopes)
        copy.states = states
        self._take_in(copy, scopes, fresh)

    def _news(self, copy: Snapshot, scopes: Sequence[Scope]) -> dict[IndexKind, dict[str, IndexEntry]]:
        """Read the entries that the copy lacks, by kind and key."""
        found: dict[IndexKind, dict[str, IndexEntry]] = {"episode": {}, "fact": {}, "name": {}, "entity": {}}
        for scope in scopes:
            copy.positions.setdefault(scope, 0)
            for page in pages_after(self._backend, scope, copy.positions[scope], rows=_PAGE):
                copy.positions[scope] = page[-1].position
                for entry in page:
                    found[entry.kind][entry.key] = entry
        return found

    def _take_in(self, copy: Snapshot, scopes: Sequence[Scope], fresh: dict[IndexKind, dict[str, IndexEntry]]) -> None:
        """Add entries to the copy; each is let go once it is there, since all of them are as large as the copy."""
        dimension, entries = copy.corpus.dimension, fresh["episode"]
        if dimension:
            copy.corpus.learn({key: halves(entry) for key, entry in fresh.pop("name").items()})
        ids = sorted(entries)
        episodes: dict[str, Episode] = {}
        for start in range(0, len(ids), _PAGE):
            episodes.update(self._backend.get_episodes(scopes, ids[start : start + _PAGE]))
        units = [_unit(episodes[i], entries[i]) for i in ids if i in episodes]
        if units:
            read = (entries.pop(unit.episode.id) for unit in units)
            copy.corpus.extend(units, ((unpacked(entry, dimension), unpacked_pieces(entry)) for entry in read))
        copy.corpus.extend_facts([_fact_unit(entry, dimension) for entry in fresh["fact"].values() if entry.detail])


def _id_of(moment: float) -> str:
    """Return what ids made at a time begin with: they are UUIDs of version 7."""
    milliseconds = f"{int(moment * 1000):012x}"
    return f"{milliseconds[:8]}-{milliseconds[8:]}"


def _fact_unit(entry: IndexEntry, dimension: int) -> FactUnit:
    detail = detail_of(entry)
    return FactUnit(
        id=entry.key,
        text=" ".join(detail["text"]),
        episode_ids=tuple(detail["episodes"]),
        vectors=unpacked(entry, dimension),
        compact=unpacked_pieces(entry),
    )


def _unit(episode: Episode, entry: IndexEntry) -> Unit:
    session = None if episode.session_id is None else (episode.scope, episode.session_id)
    at = episode.occurred_at
    detail = detail_of(entry)
    return Unit(
        episode=episode,
        session=session,
        date=f"{at.day} {at:%B} {at.year}" if session is not None else "",
        names=tuple(detail.get("names", ())),
        pieces=frozenset(detail.get("pieces", ())),
    )
