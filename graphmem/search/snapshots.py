"""In-memory snapshots of the search index, which searches score."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from graphmem.errors import EmbeddingFailed
from graphmem.index.copies import MEMORY, Copies
from graphmem.index.encoder import EpisodeEncoder
from graphmem.index.stored_vectors import detail_of, dimension_of, halves, unpacked, unpacked_pieces
from graphmem.models import Episode, IndexCursor, IndexEntry, IndexState, Scope
from graphmem.protocols import GraphBackend
from graphmem.search.corpus import Corpus, FactUnit, Unit
from graphmem.search.episode_text import talk_of
from graphmem.telemetry import in_span

_PAGE = 1000
_LAST = "~"  # sorts after every id


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


class Snapshots:
    """The snapshots that were used last, each brought up to date when it is read.

    Parameters
    ----------
    backend
        The store, which contains the index.
    encoder
        Encoder whose model says which dimension the vectors have.
    sentences
        Whether snapshots have the vectors of sentences; False if an external index has them.
    memory
        Maximum bytes of all snapshots.
    """

    def __init__(
        self, backend: GraphBackend, encoder: EpisodeEncoder, *, sentences: bool = True, memory: int = MEMORY
    ) -> None:
        self._backend = backend
        self._encoder = encoder
        self._sentences = sentences
        self._copies: Copies[tuple[Scope, ...], Snapshot] = Copies(lambda copy: copy.corpus.nbytes, memory)
        self._lock = threading.Lock()

    def drop(self, scope: Scope) -> None:
        """Drop the snapshots that contain a scope."""
        with self._lock:
            self._copies.drop(lambda scopes: scope in scopes)

    @contextmanager
    def copy(self, scopes: Sequence[Scope]) -> Generator[Snapshot]:
        """Yield an up-to-date snapshot of the scopes, exclusively to one thread at a time: call no model meanwhile."""
        key = tuple(sorted(set(scopes), key=str))
        with self._lock:
            kept = self._copies.get(key)
        dimension = kept.corpus.dimension if kept is not None and kept.corpus.has_vectors else self._dimension(key)
        with self._lock:
            copy = self._copies.get(key) or Snapshot(self._empty(dimension), {}, {}, threading.RLock())
            self._copies.put(key, copy)
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

    def _empty(self, dimension: int) -> Corpus:
        return Corpus(dimension, sentences=self._sentences)

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
            copy.corpus, copy.positions = self._empty(dimension), {}
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


def _unit(episode: Episode, entry: IndexEntry) -> Unit:
    talk = talk_of(episode)
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
