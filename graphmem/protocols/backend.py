"""A whole store: the roles together, writing, transactions, and what follows from the primitives."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from graphmem.models import (
    FORGETTING,
    ActiveFact,
    Changes,
    Community,
    CommunityAlgorithm,
    CommunityQuery,
    Edge,
    EdgeQuery,
    Entity,
    EntityQuery,
    Episode,
    EpisodeQuery,
    IndexCursor,
    IndexEntry,
    IndexKind,
    IndexStatus,
    JobState,
    Membership,
    MembershipQuery,
    Merge,
    MergeQuery,
    Partition,
    RecallQuery,
    RecallTrace,
    Scope,
    StoreStats,
)
from graphmem.protocols.stores import (
    CommunityStore,
    EdgeStore,
    EntityStore,
    EpisodeStore,
    IndexStore,
    MergeStore,
    RecallStore,
    Traversal,
    UpkeepStore,
)
from graphmem.protocols.vectors import VectorIndex
from graphmem.text.words import unaccented

MAX_WORD = 64
"""Characters of a word that count: some engines cut longer ones in pieces."""

_WORD = re.compile(r"[^\W_]+")


def split_words(text: str) -> list[str]:
    """Return the lower-case words of letters and digits, without diacritics, in order."""
    plain = text if text.isascii() else unaccented(text)
    return [word[:MAX_WORD] for word in _WORD.findall(plain.lower())]


def question_words(words: Iterable[str]) -> list[str]:
    """Return the words that are asked for, each once."""
    return list(dict.fromkeys(token for word in words for token in split_words(word)))


class Explorer(Protocol):
    """A program, not part of graphmem, in which people look at the graph of a store."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    @abstractmethod
    def url(self) -> str:
        """Where it is opened on this store, without a password."""
        ...

    @property
    @abstractmethod
    def hints(self) -> tuple[str, ...]:
        """What to know for opening it, a sentence each."""
        ...

    @property
    @abstractmethod
    def import_hints(self) -> tuple[str, ...]:
        """How it imports the files, a sentence each."""
        ...

    @abstractmethod
    def files(self, scope: Scope) -> Mapping[str, bytes]:
        """Return relative path → content of what it can import: queries about a scope, colors and captions."""
        ...


class CommunityDetector(Protocol):
    """Finds communities: in this process (`graphmem.communities`), or inside of a store.

    The graph is undirected. Its nodes are the entities that are not archived and have an active edge to another such
    one. An edge weighs its confidence, at least `MIN_EDGE_WEIGHT`; those between the same two entities add up. Neither
    retrievals nor the type of an edge count: reading a memory doesn't change its communities, and anybody can project
    the same graph.
    """

    @abstractmethod
    def detect(
        self, scope: Scope, algorithm: CommunityAlgorithm = "label_propagation", seed: Mapping[str, str] | None = None
    ) -> Partition:
        """Return the communities of a scope; the same ones for the same input.

        Parameters
        ----------
        scope
            Whose graph.
        algorithm
            ``label_propagation``: at most 50 rounds in which each node takes the label that weighs most among its
            neighbors, of several the smallest; the partition has one level. ``leiden``: by modularity, with levels.
        seed
            Entity id → key of the community that it is in at present: the search begins with that. Entities without
            a key begin alone; those that aren't in the graph any more don't matter.

        Raises
        ------
        InvalidInput
            If there is no such algorithm.
        MissingExtra
            If the algorithm needs a package that isn't installed.
        GraphTooLarge
            If the store lacks the memory for it; this process may find them then.
        BackendUnavailable
            If the store can't be read.
        """
        ...


T = TypeVar("T")


class Maintenance(Protocol):
    """Writing, transactions and counts."""

    @abstractmethod
    def write(self, scope: Scope, changes: Changes) -> None:
        """Apply `changes` in the order that its docstring gives; all or nothing.

        Raises
        ------
        Conflict
            If an entity's (canonical name, type) or an active edge's key is held by a row with another id,
            or a row's id is taken in another scope.
        InvalidInput
            If a row names an entity, edge, episode or community that isn't in the scope (`superseded_by` is not
            looked up), carries another scope, or closes an edge before it began.
        """
        ...

    @abstractmethod
    def atomic(self, work: Callable[[], T]) -> T:
        """Run `work` in one write transaction and return what it returns.

        Reads and writes that this thread makes on the backend inside belong to the transaction and see
        it; an exception undoes it. No other writer, of this process or another, comes between what
        `work` reads and what it writes: a store that can't wait for that runs `work` again when another
        came first, so `work` must have no effects elsewhere. Nested calls join the outer one; one that raises
        undoes what it did itself, and the outer one goes on if it catches that.
        """
        ...

    @abstractmethod
    def scopes(self) -> list[Scope]:
        """Return the scopes that hold anything, ordered by key."""
        ...

    @abstractmethod
    def stats(self, scope: Scope) -> StoreStats:
        """Count what a scope holds."""
        ...

    @abstractmethod
    def diagnose(self) -> list[tuple[str, bool, str]]:
        """Return (what, whether it is well, detail) for `graphmem doctor`: place, version, integrity; no secrets."""
        ...

    @abstractmethod
    def close(self) -> None:
        """Release files and connections; a second call does nothing."""
        ...


@runtime_checkable
class GraphBackend(
    EntityStore,
    EdgeStore,
    EpisodeStore,
    CommunityStore,
    RecallStore,
    IndexStore,
    MergeStore,
    UpkeepStore,
    Traversal,
    Maintenance,
    Protocol,
):
    """A store for memories: everything above, and what follows from it."""

    @property
    def community_detector(self) -> CommunityDetector | None:
        """What finds communities inside of the store, or None: then `graphmem.communities` finds them in this process.

        Ask for it when it is needed: what a store can do depends on what is installed there.
        """
        return None

    @property
    def explorer(self) -> Explorer | None:
        """A program in which people look at the graph, or None where the store comes with none."""
        return None

    @property
    def vector_index(self) -> VectorIndex | None:
        """The store's own engine for vectors, or None where it has none; it follows the store as any other does."""
        return None

    def snapshot(self, work: Callable[[GraphBackend], T]) -> T:
        """Run `work` with a backend from which it reads one state of the store, and return what it returns.

        A store that has nothing better does it in a transaction, for which writers wait, and may run `work` again.
        """
        return self.atomic(lambda: work(self))

    def get_entities(self, scopes: Sequence[Scope], ids: Sequence[str]) -> dict[str, Entity]:
        """Return the entities with these ids by id; absent ones are left out."""
        return {e.id: e for e in self.find_entities(scopes, EntityQuery(ids=tuple(ids)), limit=max(1, len(ids)))}

    def get_edges(self, scopes: Sequence[Scope], ids: Sequence[str]) -> dict[str, Edge]:
        """Return the edges with these ids by id, in whatever version; absent ones are left out."""
        query = EdgeQuery(ids=tuple(ids), versions="all")
        return {e.id: e for e in self.find_edges(scopes, query, limit=max(1, len(ids)))}

    def get_episodes(self, scopes: Sequence[Scope], ids: Sequence[str]) -> dict[str, Episode]:
        """Return the episodes with these ids by id; absent ones are left out."""
        return {e.id: e for e in self.find_episodes(scopes, EpisodeQuery(ids=tuple(ids)), limit=max(1, len(ids)))}

    def all_edges(self, scopes: Sequence[Scope], query: EdgeQuery, *, chunk: int = 1000) -> Iterator[Edge]:
        """Yield every edge that matches, read in pages of `chunk` rows."""
        return _each(pages(lambda after: self.find_edges(scopes, query, after=after, limit=chunk)))

    def find_active_facts(self, scope: Scope, *, after: str = "", limit: int = 1000) -> list[ActiveFact]:
        """Return a page of the active facts between entities that aren't archived, in ascending order of id.

        A store may read no more than that of its rows: whoever looks for communities asks for all of a scope.
        """
        found: list[ActiveFact] = []
        query = EdgeQuery(versions="active")
        while page := self.find_edges([scope], query, after=after, limit=limit - len(found)):
            ends = self.get_entities([scope], list({i for e in page for i in (e.source_id, e.target_id)}))
            live = {i for i, entity in ends.items() if entity.archived_at is None}
            found += [
                ActiveFact(
                    id=e.id,
                    source_id=e.source_id,
                    target_id=e.target_id,
                    edge_type=e.edge_type,
                    confidence=e.confidence,
                    retrieval_count=e.retrieval_count,
                    valid_from=e.valid_from.timestamp(),
                )
                for e in page
                if e.source_id in live and e.target_id in live
            ]
            after = page[-1].id
        return found

    def all_entities(self, scopes: Sequence[Scope], query: EntityQuery, *, chunk: int = 1000) -> Iterator[Entity]:
        """Yield every entity that matches, read in pages of `chunk` rows."""
        return _each(pages(lambda after: self.find_entities(scopes, query, after=after, limit=chunk)))

    def all_episodes(self, scopes: Sequence[Scope], query: EpisodeQuery, *, chunk: int = 1000) -> Iterator[Episode]:
        """Yield every episode that matches, read in pages of `chunk` rows."""
        return _each(pages(lambda after: self.find_episodes(scopes, query, after=after, limit=chunk)))

    def all_communities(
        self, scopes: Sequence[Scope], query: CommunityQuery, *, chunk: int = 1000
    ) -> Iterator[Community]:
        """Yield every community that matches, read in pages of `chunk` rows."""
        return _each(pages(lambda after: self.find_communities(scopes, query, after=after, limit=chunk)))

    def all_memberships(
        self, scopes: Sequence[Scope], query: MembershipQuery, *, chunk: int = 10_000
    ) -> Iterator[Membership]:
        """Yield every membership that matches, read in pages of `chunk` rows."""
        after = None
        while page := self.find_memberships(scopes, query, after=after, limit=chunk):
            yield from page
            after = page[-1]

    def all_recalls(self, scopes: Sequence[Scope], query: RecallQuery, *, chunk: int = 500) -> Iterator[RecallTrace]:
        """Yield every recall trace that matches, read in pages of `chunk` rows."""
        return _each(pages(lambda after: self.find_recalls(scopes, query, after=after, limit=chunk)))

    def all_merges(self, scopes: Sequence[Scope], query: MergeQuery, *, chunk: int = 500) -> Iterator[Merge]:
        """Yield every merge that matches, read in pages of `chunk` rows."""
        return _each(pages(lambda after: self.find_merges(scopes, query, after=after, limit=chunk)))

    def index_status(self, looks: Sequence[IndexCursor]) -> list[IndexStatus]:
        """Tell how the index of each scope stands: what a search asks first. A store may do it in one round trip."""
        return [
            IndexStatus(
                state=self.index_state(look.scope),
                waiting=bool(
                    self.find_unindexed(look.scope, "episode", after=look.episode, limit=1)
                    or self.find_unindexed(look.scope, "fact", after=look.fact, limit=1)
                ),
                entries=bool(self.read_index(look.scope, after=look.position, limit=1)),
            )
            for look in looks
        ]

    def all_entries(self, scope: Scope, *, kind: IndexKind | None = None, chunk: int = 1000) -> Iterator[IndexEntry]:
        """Yield every index entry of one kind, or of all, read in pages of `chunk` rows."""
        after = 0
        while page := self.read_index(scope, kind=kind, after=after, limit=chunk):
            yield from page
            after = page[-1].position

    def find_job_state(self, scope: Scope, job: str) -> JobState:
        """Return how far a job of upkeep has come in a scope; a mark that says nothing where there is none."""
        return next((mark for mark in self.find_job_states(scope) if mark.job == job), JobState(job))

    def erasure_token(self, scope: Scope) -> str:
        """Return what is another one whenever something of a scope was forgotten: what was read before may quote it."""
        return self.find_job_state(scope, FORGETTING).cursor

    def write_unless_erased(self, scope: Scope, changes: Changes, *, since: str) -> bool:
        """Apply changes that were made of rows read before, if nothing was forgotten `since` (`erasure_token`) then.

        Returns whether they were applied; raises what `write` does.
        """

        def work() -> bool:
            if self.erasure_token(scope) != since:
                return False
            self.write(scope, changes)
            return True

        return self.atomic(work)


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


R = TypeVar("R", bound=_HasId)


def pages(read: Callable[[str], list[R]]) -> Iterator[list[R]]:
    """Yield pages in ascending order of id until there are no more rows.

    Parameters
    ----------
    read
        Returns the page behind an id; "" is before the first.
    """
    after = ""
    while page := read(after):
        yield page
        after = page[-1].id


def _each(found: Iterator[list[R]]) -> Iterator[R]:
    for page in found:
        yield from page
