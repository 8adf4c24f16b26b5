"""Maintenance of a store's index, and its in-memory snapshots for scoring."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise

from graphmem.errors import EmbeddingFailed, IndexMismatch, InvalidInput, StoreReadOnly
from graphmem.index.copies import MEMORY, Copies
from graphmem.index.encoder import EpisodeEncoder, StatedFact
from graphmem.index.follower import ScopeLocks, UnindexedScan, VectorFollower
from graphmem.index.stored_vectors import detail_of, dimension_of, halves, unpacked, unpacked_pieces
from graphmem.models import (
    Changes,
    Episode,
    EpisodeQuery,
    IndexCursor,
    IndexEntry,
    IndexKind,
    IndexState,
    Scope,
    first_id_at,
)
from graphmem.protocols import GraphBackend, VectorIndex
from graphmem.search.corpus import Corpus, FactUnit, Unit
from graphmem.search.episode_text import adds_words, spoken
from graphmem.telemetry import in_span
from graphmem.text.first_person import first_person
from graphmem.text.terms import terms

_PAGE = 1000
_BATCH = 64
_BATCH_IN_TIME = 16  # rows of the first batch if the time is limited: 16 turns of 2 kB take about a second
_MOST_IN_TIME = 512  # rows of a later one: without a model, or of short facts, many take less than that
_REFUSED = 10.0  # seconds for which a store that refused to be written isn't asked again
_ATTEMPTS = 3  # to index a batch that erasures intervene in
_KINDS: tuple[IndexKind, ...] = ("episode", "fact")  # in this order
_LATENESS = (5.0, 60.0, 600.0)  # seconds within which most, nearly all, and all rows are committed after their id
_INTERVALS = (0.0, 1.0, 30.0)  # seconds between scans for rows of each lateness
_LAST = "~"  # sorts after every id


def _next_batch(rows: int, seconds: float) -> int:
    """Return the number of rows of the next batch, given those of the last one and its duration."""
    if seconds < 0.2:
        return min(2 * rows, _MOST_IN_TIME)
    return max(rows // 2, _BATCH_IN_TIME) if seconds > 0.5 else rows


@dataclass(frozen=True, slots=True)
class _Seen:
    """Times of the last scans over each lateness that found no unindexed rows; seconds since 1970."""

    times: tuple[float, ...]

    def due(self, now: float) -> int:
        """Return the index of the longest lateness that is due to be scanned."""
        return max(n for n, time in enumerate(self.times) if now - time >= _INTERVALS[n])


def _cursor(seen: _Seen | None, now: float) -> str:
    """Return the id after which rows may be unindexed; later rows are covered only at intervals."""
    if seen is None:
        return ""
    due = seen.due(now)
    return first_id_at(seen.times[due] - _LATENESS[due])


@dataclass(slots=True)
class Snapshot:
    """An in-memory corpus with the index states and positions up to which it was read.

    Hold the lock to read the corpus, but not while a model or a server is called. Meanwhile other threads may append to
    the corpus, or replace it by another one and leave it as it was: positions in a corpus are valid forever. `limited`
    says whether episodes of the scopes end or expire.
    """

    corpus: Corpus
    states: dict[Scope, IndexState]
    positions: dict[Scope, int]
    lock: threading.RLock
    limited: bool = False


class SearchIndex:
    """The search index of one store.

    Parameters
    ----------
    backend
        The store, which contains the index.
    encoder
        Encoder of the index entries.
    vectors
        An external index that holds the vectors of sentences instead of the snapshot.
    memory
        Maximum bytes of the snapshots; those used last are kept.
    """

    def __init__(
        self, backend: GraphBackend, encoder: EpisodeEncoder, vectors: VectorIndex | None = None, memory: int = MEMORY
    ) -> None:
        self.follower = None if vectors is None else VectorFollower(backend, vectors, lambda: encoder.dimension)
        self._backend = backend
        self._encoder = encoder
        self._copies: Copies[tuple[Scope, ...], Snapshot] = Copies(lambda copy: copy.corpus.nbytes, memory)
        self._indexed: dict[tuple[Scope, IndexKind], _Seen] = {}
        self._unindexed = UnindexedScan(backend)
        self._looked_at = 0.0  # wall clock time of the last scan for unindexed rows
        self._refused = 0.0, ""  # until when, and why
        self._generations: dict[Scope, int] = {}
        self._lock = threading.Lock()
        self._indexing = ScopeLocks()

    # Writing ----------------------------------------------------------------------------------------

    def index_waiting(self, scope: Scope, *, seconds: float | None = None, limit: int | None = None) -> bool:
        """Index the unindexed rows of a scope, episodes before facts; return whether none are left.

        Parameters
        ----------
        scope
            Scope to index.
        seconds, limit
            Maximum time and number of rows; the rest is left for the next call.

        Raises
        ------
        EmbeddingFailed
            If the model fails; episodes are then indexed by their words only.
        IndexUnavailable
            If the external vector index can't be reached; the store's own index is up to date.
        """
        self._require_model(scope)
        deadline = None if seconds is None else time.monotonic() + seconds
        left, batch = limit, _BATCH if deadline is None else _BATCH_IN_TIME
        for kind in _KINDS:
            complete = False
            while not complete:
                began = time.monotonic()
                done, complete = self._index_batch(scope, kind, min(batch, left or batch), deadline)
                if not done and not complete:
                    return False
                left = None if left is None else left - done
                if deadline is not None:
                    batch = _next_batch(batch, time.monotonic() - began)
                if done and (left == 0 or (deadline is not None and time.monotonic() >= deadline)):
                    return False
        if self.follower is None:
            return True
        return self.follower.sync(scope, seconds=None if deadline is None else max(0.0, deadline - time.monotonic()))

    def stale_scopes(self, scopes: Sequence[Scope]) -> list[Scope]:
        """Return the scopes that need `index_waiting`; one round trip. With an external index, return all."""
        if self.follower is not None:
            return list(scopes)
        now = self._now()
        generations = {scope: self._generations.get(scope) for scope in scopes}  # first: see `_require_model`
        seen = {(scope, kind): self._indexed.get((scope, kind)) for scope in scopes for kind in _KINDS}
        cursors = [
            IndexCursor(scope, _cursor(seen[scope, "episode"], now), _cursor(seen[scope, "fact"], now))
            for scope in scopes
        ]
        found: list[Scope] = []
        for scope, news in zip(scopes, self._backend.index_status(cursors), strict=True):
            is_known = generations[scope] == news.state.generation
            if news.waiting or not is_known or news.state.model not in (None, self._encoder.model):
                found.append(scope)
            else:
                for kind in _KINDS:
                    self._settle(scope, kind, now, seen[scope, kind])
        return found

    def _settle(self, scope: Scope, kind: IndexKind, now: float, seen: _Seen | None) -> None:
        """Record a scan that found no unindexed rows after the cursor of `seen`, unless that was reset meanwhile."""
        with self._lock:
            if self._indexed.get((scope, kind)) is seen:
                later = () if seen is None else seen.times[seen.due(now) + 1 :]
                self._indexed[scope, kind] = _Seen((now,) * (len(_LATENESS) - len(later)) + later)

    def _now(self) -> float:
        """Return the time. Reset all cursors if the clock went back, since new ids may be below indexed ones."""
        with self._lock:  # or a thread that took its time earlier would seem to show a clock that went back
            now = time.time()
            if now < self._looked_at:
                self._indexed.clear()
            self._looked_at = now
            return now

    def _index_batch(self, scope: Scope, kind: IndexKind, limit: int, deadline: float | None) -> tuple[int, bool]:
        """Index a batch of unindexed rows; return their number, and whether none are left.

        Another thread that indexes the scope is waited for until the deadline; (0, False) if it takes longer.
        """
        if self._indexing.is_held(scope) and not self._waiting(scope, kind, 1, self._now()):
            return 0, True  # no need to wait for another thread
        with self._indexing.held(scope, deadline) as acquired:  # two threads don't index the same batch
            if not acquired:
                return 0, False
            for _ in range(_ATTEMPTS):
                now, seen = self._now(), self._indexed.get((scope, kind))
                waiting = self._waiting(scope, kind, limit, now)
                if not waiting:
                    return 0, True
                if self._index_unless_refused(scope, kind, waiting):
                    self._unindexed.advance(scope, kind, waiting, limit)
                    complete = self._unindexed.is_complete(scope, kind, len(waiting), limit)
                    if complete:
                        self._settle(scope, kind, now, seen)
                    return len(waiting), complete
        return limit, False  # none of them, as erasures intervened; the caller goes on if there is time

    def _index_unless_refused(self, scope: Scope, kind: IndexKind, ids: Sequence[str]) -> bool:
        """Index rows, but for a while after a store refused to be written, without encoding them in vain."""
        until, refusal = self._refused
        if time.monotonic() < until:
            raise StoreReadOnly(refusal)
        try:
            return self._index(scope, kind, ids)
        except StoreReadOnly as error:
            self._refused = time.monotonic() + _REFUSED, str(error)
            raise

    def _require_model(self, scope: Scope) -> None:
        """Raise `IndexMismatch` for an index of another model; reset an index that was built without a model."""
        state = self._backend.index_state(scope)
        built = state.model
        if self._generations.get(scope) != state.generation:
            self.reset_cursor(scope)  # entries were removed, so indexed rows may be unindexed again
            self._generations[scope] = state.generation  # last: who reads it reads the new cursors
        if built is None or built == self._encoder.model:
            return
        if built == "":
            self._backend.reset_index(scope)
        elif self._encoder.model:
            raise IndexMismatch(
                f"scope {scope}: its index was built with the embedding model {built!r}, not with "
                f"{self._encoder.model!r}; configure that model, or rebuild the index: graphmem reindex"
            )

    def _waiting(self, scope: Scope, kind: IndexKind, limit: int, now: float) -> list[str]:
        """Return the ids of unindexed rows after the cursor."""
        seen = self._indexed.get((scope, kind))
        waiting = self._unindexed.find(scope, kind, after=_cursor(seen, now), limit=limit)
        if not waiting:
            self._settle(scope, kind, now, seen)
        return waiting

    def _index(self, scope: Scope, kind: IndexKind, ids: Sequence[str]) -> bool:
        """Index rows; return False if an erasure intervened and nothing was written."""
        if not self._encoder.model and (built := self._backend.index_state(scope).model):
            if kind == "episode":
                since = self._backend.erasure_token(scope)
                self._write_words_only(scope, self._with_earlier(scope, ids), since)
            raise EmbeddingFailed(f"scope {scope}: its index has vectors of {built!r}, but no model is configured")
        since = self._backend.erasure_token(scope)
        if kind == "fact":
            return self._write(scope, kind, self._encoder.facts(self._stated(scope, ids)), since)
        episodes = self._with_earlier(scope, ids)
        try:
            entries = self._encoder.episodes(episodes, self._listed(scope, episodes))
            names = self._encoder.names_of(entries)
            known = {entry.key for entry in self._backend.find_index(scope, "name", names)} if names else set[str]()
            entries += self._encoder.names([name for name in names if name not in known])
        except EmbeddingFailed:
            self._write_words_only(scope, episodes, since)
            raise
        return self._write(scope, kind, entries, since)

    def _write(self, scope: Scope, kind: IndexKind, entries: Sequence[IndexEntry], since: str) -> bool:
        """Write entries and return True; return False if an erasure intervened, so that the rows stay unindexed.

        Complete entries of the kind are kept: another process may have indexed the same rows meanwhile, and rewriting
        an entry makes every process that has read it rebuild its copy.
        """
        keys = [entry.key for entry in entries if entry.kind == kind]

        def work() -> bool:
            there = {entry.key for entry in self._backend.find_index(scope, kind, keys) if entry.complete}
            fresh = tuple(entry for entry in entries if entry.kind != kind or entry.key not in there)
            return self._backend.write_unless_erased(scope, Changes(index=fresh), since=since)

        try:
            return self._backend.atomic(work)
        except InvalidInput:
            if self._all_there(scope, entries):
                raise
            return False

    def _all_there(self, scope: Scope, entries: Sequence[IndexEntry]) -> bool:
        episodes, facts = ([entry.key for entry in entries if entry.kind == kind] for kind in _KINDS)
        there = {**self._backend.get_episodes([scope], episodes), **self._backend.get_edges([scope], facts)}
        return len(there) == len(episodes) + len(facts)

    def _stated(self, scope: Scope, ids: Sequence[str]) -> list[StatedFact]:
        """Return facts in the first person of their speaker, with the episodes that they add terms to."""
        edges = self._backend.get_edges([scope], ids)
        named = dict.fromkeys(i for edge in edges.values() for i in edge.episode_ids)
        episodes = self._backend.get_episodes([scope], list(named))
        own = {i: frozenset(terms(spoken(episode))) for i, episode in episodes.items()}
        facts: list[StatedFact] = []
        for edge in edges.values():
            sources = [i for i in edge.episode_ids if i in episodes]
            text = first_person(edge.fact, [who for i in sources[:1] if (who := episodes[i].speaker)])
            stated = terms(text)
            extended = tuple(i for i in sources if adds_words(stated, own[i].__contains__))
            facts.append(StatedFact(edge.id, text, extended))
        return facts

    def _write_words_only(self, scope: Scope, episodes: Sequence[tuple[Episode, Episode | None]], since: str) -> None:
        known = {entry.key for entry in self._backend.find_index(scope, "episode", [e.id for e, _ in episodes])}
        new = [pair for pair in episodes if pair[0].id not in known]
        entries = self._encoder.words_only(new, self._listed(scope, new))
        self._write(scope, "episode", [replace(entry, complete=False) for entry in entries], since)

    def _listed(self, scope: Scope, episodes: Sequence[tuple[Episode, Episode | None]]) -> dict[str, list[str]]:
        """Return the names of subjects and objects in each episode of triples."""
        listed: dict[str, list[str]] = {}
        if ids := [episode.id for episode, _ in episodes if episode.source == "triple"]:
            for mention in self._backend.all_mentions([scope], episode_ids=ids):
                listed.setdefault(mention.episode_id, []).append(mention.surface)
        return listed

    def _with_earlier(self, scope: Scope, ids: Sequence[str]) -> list[tuple[Episode, Episode | None]]:
        """Return episodes, each message with the episode before it in its session, if that is a message."""
        found = self._backend.get_episodes([scope], ids)
        episodes = [found[i] for i in sorted(found)]
        sessions: defaultdict[str, list[Episode]] = defaultdict(list)
        for episode in episodes:
            if (session := _talk_of(episode)) is not None:
                sessions[session].append(episode)
        earlier: dict[str, Episode | None] = {}
        for group in sessions.values():
            # contains all of the group, unless others lie between
            run = [group[-1], *self._before(scope, group[-1], len(group))]
            before = {later.id: one for later, one in pairwise(run)}
            begins_with = run[-1].id if len(run) <= len(group) else None
            for episode in group:
                one = before.get(episode.id)
                if one is None and episode.id != begins_with:
                    one = next(iter(self._before(scope, episode, 1)), None)
                earlier[episode.id] = one if one is not None and _talk_of(one) is not None else None
        return [(episode, earlier.get(episode.id)) for episode in episodes]

    def _before(self, scope: Scope, episode: Episode, limit: int) -> Sequence[Episode]:
        """Return the last episodes of its session before an episode, newest first."""
        query = EpisodeQuery(session_id=episode.session_id, before=episode.id)
        return self._backend.find_episodes([scope], query, limit=limit, newest_first=True)

    def reset_cursor(self, scope: Scope) -> None:
        """Reset the cursors of a scope, so that rows with old ids are checked again."""
        for kind in _KINDS:
            self._indexed.pop((scope, kind), None)

    # Reading ----------------------------------------------------------------------------------------

    def rebuild(self, scope: Scope, on_progress: Callable[[int], None] | None = None) -> int:
        """Rebuild the index of a scope; return the number of indexed rows, also reported to `on_progress`.

        The old index is removed first. An interrupted rebuild continues with the next `index_waiting`.
        """
        self._backend.reset_index(scope)
        if self.follower is not None:
            self.follower.restart(scope)
        self.reset_cursor(scope)
        done = 0
        for kind in _KINDS:
            complete = False
            while not complete:
                indexed, complete = self._index_batch(scope, kind, _BATCH, None)
                if not indexed:
                    break
                done += indexed
                if self.follower is not None:
                    self.follower.sync(scope)
                if on_progress is not None:
                    on_progress(done)
        return done

    def forget(self, scope: Scope, keys: Sequence[tuple[IndexKind, str]] | None) -> None:
        """Drop the data of removed rows from memory and from the external index.

        Parameters
        ----------
        scope
            Scope of the rows.
        keys
            Kinds and keys of the rows; None means all rows of the scope.

        Raises
        ------
        IndexUnavailable
            If the external index can't be reached; the next synchronization refills the scope.
        """
        with self._lock:
            self._copies.drop(lambda scopes: scope in scopes)
        self._encoder.forget()
        if self.follower is not None:
            self.follower.forget(scope, keys)

    @contextmanager
    def copy(self, scopes: Sequence[Scope]) -> Generator[Snapshot]:
        """Yield an up-to-date snapshot of the scopes, exclusively to one thread at a time: call no model meanwhile."""
        key = tuple(sorted(set(scopes), key=str))
        with self._lock:
            kept = self._copies.get(key)
        dimension = kept.corpus.dimension if kept is not None and kept.corpus.has_vectors else self._dimension(key)
        with self._lock:
            copy = self._copies.put(key, self._copies.get(key) or self._empty(dimension))
        with copy.lock:
            try:
                self._refresh(copy, key, copy.corpus.dimension or dimension)
            except BaseException:
                with self._lock:  # the copy may lack entries before its positions
                    self._copies.drop(lambda scopes: scopes == key)
                raise
            with self._lock:
                self._copies.measure(key, copy)
            yield copy

    def _empty(self, dimension: int) -> Snapshot:
        return Snapshot(Corpus(dimension, sentences=self.follower is None), {}, {}, threading.RLock())

    def _dimension(self, scopes: Sequence[Scope]) -> int:
        """Return the dimension of the model, or of its stored vectors if the model fails; 0 without either.

        A model that doesn't declare it is called; hold no lock.
        """
        try:
            return self._encoder.dimension
        except EmbeddingFailed:
            pages = (self._backend.read_index(scope, after=0, limit=_PAGE) for scope in scopes)
            return next((found for page in pages for entry in page if (found := dimension_of(entry))), 0)

    @in_span("graphmem.search.copy")
    def _refresh(self, copy: Snapshot, scopes: Sequence[Scope], dimension: int) -> None:
        cursors = [IndexCursor(scope, _LAST, _LAST, copy.positions.get(scope, 0)) for scope in scopes]
        found = dict(zip(scopes, self._backend.index_status(cursors), strict=True))
        states = {scope: status.state for scope, status in found.items()}
        waiting = [scope for scope, status in found.items() if status.entries]
        removed = any(copy.states.get(scope, state).generation != state.generation for scope, state in states.items())
        removed |= not copy.corpus.has_vectors and dimension > 0
        while removed or not self._add_new_entries(copy, waiting):
            copy.corpus, copy.positions = self._empty(dimension).corpus, {}
            waiting, removed = list(scopes), False
        copy.states, copy.limited = states, any(status.limited for status in found.values())

    def _add_new_entries(self, copy: Snapshot, scopes: Sequence[Scope]) -> bool:
        """Add new entries, a page at a time; return False if the snapshot has an older entry of one of the episodes."""
        corpus = copy.corpus
        try:
            for scope in scopes:
                for page in self._backend.entry_pages(scope, after=copy.positions.get(scope, 0), chunk=_PAGE):
                    keys = [entry.key for entry in page if entry.kind == "episode"]
                    if not corpus.position.keys().isdisjoint(keys):
                        return False
                    _add_page(corpus, page, self._backend.get_episodes([scope], keys) if keys else {})
                    copy.positions[scope] = page[-1].position
            return True
        finally:
            corpus.add_names()  # also after a failure or a return: other threads may hold the corpus


def _add_page(corpus: Corpus, page: Sequence[IndexEntry], episodes: Mapping[str, Episode]) -> None:
    """Add a page of entries to a corpus, given the rows of its episodes by id."""
    d = corpus.dimension
    if d:
        corpus.learn({entry.key: halves(entry, d) for entry in page if entry.kind == "name"})
    entries = {e.key: e for e in page if e.kind == "episode" and e.key in episodes}
    if entries:
        units = [_unit(episodes[i], entries[i]) for i in sorted(entries)]
        read = (entries[unit.episode.id] for unit in units)
        corpus.extend(units, ((unpacked(entry, d), unpacked_pieces(entry, d)) for entry in read))
    corpus.extend_facts([_fact_unit(entry, d) for entry in page if entry.kind == "fact" and entry.detail])


def _fact_unit(entry: IndexEntry, dimension: int) -> FactUnit:
    detail = detail_of(entry)
    return FactUnit(
        id=entry.key,
        text=" ".join(detail["text"]),
        episode_ids=tuple(detail["episodes"]),
        vectors=unpacked(entry, dimension),
        compact=unpacked_pieces(entry, dimension),
    )


def _talk_of(episode: Episode) -> str | None:
    """Return the session of a message; documents of a session don't follow each other."""
    return episode.session_id if episode.source == "message" else None


def _unit(episode: Episode, entry: IndexEntry) -> Unit:
    talk = _talk_of(episode)
    session = None if talk is None else (episode.scope, talk)
    at = episode.occurred_at
    detail = detail_of(entry)
    return Unit(
        episode=episode,
        session=session,
        date=f"{at.day} {at:%B} {at.year}" if session is not None else "",
        names=tuple(detail.get("names", ())),
        pieces=frozenset(detail.get("pieces", ())),
    )
