"""The protocol of a complete store: all roles, writes, transactions, and methods derived from the primitives."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from itertools import chain
from typing import Protocol, TypeVar, runtime_checkable

from graphmem.models import (
    FORGETTING,
    STATED_KINDS,
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
    Mention,
    Merge,
    MergeQuery,
    Move,
    Partition,
    RecallQuery,
    RecallTrace,
    Scope,
    SessionSummary,
    StoreStats,
    combined_sessions,
)
from graphmem.models.base import END_OF_TIME
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

_in_background: ContextVar[bool] = ContextVar("graphmem_in_background", default=False)


def enter_background() -> None:
    """Mark this thread as background work, whose writes wait for those of callers."""
    _in_background.set(True)


def in_background() -> bool:
    """Return whether this thread does background work: a store with one writer lets the writes of callers go first."""
    return _in_background.get()


class Explorer(Protocol):
    """An external program for viewing the graph of a store."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The display name."""
        ...

    @property
    @abstractmethod
    def url(self) -> str:
        """The URL that opens it on this store, without a password."""
        ...

    @property
    @abstractmethod
    def hints(self) -> tuple[str, ...]:
        """Instructions for opening it, one sentence each."""
        ...

    @property
    @abstractmethod
    def import_hints(self) -> tuple[str, ...]:
        """Instructions for importing the files, one sentence each."""
        ...

    @abstractmethod
    def files(self, scope: Scope) -> Mapping[str, bytes]:
        """Return files for the work with the graph, by relative path: saved queries for a scope, colors, its schema."""
        ...


class CommunityDetector(Protocol):
    """Community detection, in this process (`graphmem.communities`) or inside a store.

    The graph is undirected. Its nodes are the unarchived entities that have an active edge to another unarchived
    entity; inferred edges don't count. The weight of an edge is its confidence, at least `MIN_EDGE_WEIGHT`; weights of
    parallel edges are added. Retrieval counts and edge types are ignored, so reads don't change the communities and
    every implementation projects the same graph.
    """

    @abstractmethod
    def detect(
        self, scope: Scope, algorithm: CommunityAlgorithm = "label_propagation", seed: Mapping[str, str] | None = None
    ) -> Partition:
        """Return the communities of a scope; deterministic for the same input.

        Parameters
        ----------
        scope
            The scope of the graph.
        algorithm
            ``label_propagation``: at most 50 rounds in which each node takes the label with the highest weight among
            its neighbors, the smallest label on ties; the partition has one level. ``leiden``: modularity
            optimization, with several levels.
        seed
            Initial partition: entity id → key of its current community. Entities without a key start alone; entities
            outside of the graph are ignored.

        Raises
        ------
        InvalidInput
            If the algorithm is unknown.
        MissingExtra
            If the algorithm needs a package that isn't installed.
        GraphTooLarge
            If the store lacks the memory; detection in this process may still succeed.
        BackendUnavailable
            If the store can't be read.
        """
        ...


T = TypeVar("T")


class Maintenance(Protocol):
    """Writes, transactions and row counts."""

    @abstractmethod
    def write(self, scope: Scope, changes: Changes) -> None:
        """Apply `changes` atomically, in the order given in the docstring of `Changes`.

        Raises
        ------
        Conflict
            If an entity's (canonical name, type) or an active edge's key belongs to a row with another id,
            or a row's id exists in another scope.
        InvalidInput
            If a row references an entity, edge, episode or community that isn't in the scope (`superseded_by` is not
            checked), has another scope, or ends an edge before its start.
        """
        ...

    @abstractmethod
    def atomic(self, work: Callable[[], T]) -> T:
        """Run `work` in one write transaction and return its result.

        Reads and writes of this thread on the backend are part of the transaction; an exception rolls it
        back. The transaction is serializable: no other writer, of this process or another, commits between
        the reads and the writes of `work`. A store with optimistic concurrency runs `work` again after a
        conflict, so `work` must have no other side effects. Nested calls join the outer transaction. After a `write`
        that was refused with `Conflict` or `InvalidInput`, which changes nothing, `work` may continue; it must not
        catch any other exception of the store or of a nested call.
        """
        ...

    @abstractmethod
    def scopes(self) -> list[Scope]:
        """Return the scopes that have any rows, ordered by key."""
        ...

    @abstractmethod
    def stats(self, scope: Scope) -> StoreStats:
        """Count the rows of a scope."""
        ...

    @abstractmethod
    def read_move(self) -> Move | None:
        """Return the mark of the migration that the store takes part in; None if there is none."""
        ...

    @abstractmethod
    def set_move(self, move: Move | None, *, replacing: Move | None) -> bool:
        """Set or remove the mark if it is `replacing`; return whether it was.

        When it returns, the transactions that began under the former mark have ended, and so have their writes.
        """
        ...

    @abstractmethod
    def adopt(self, move: Move | None) -> None:
        """Set the mark under which this object writes; None when it is opened.

        Each of its transactions compares it with the mark of the store (`Move.mark`) before it writes anything, and
        raises `StoreMoved` if they differ. `scrub` and `set_move` don't; neither do reads.
        """
        ...

    @abstractmethod
    def diagnose(self) -> list[tuple[str, bool, str]]:
        """Return (check, passed, detail) for `graphmem doctor`: location, version, integrity; never secrets."""
        ...

    @abstractmethod
    def close(self) -> None:
        """Release files and connections; closing again has no effect, other calls raise `BackendUnavailable`."""
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
    """A store for memories: all roles, and methods derived from them."""

    @property
    def community_detector(self) -> CommunityDetector | None:
        """The community detector inside the store; None runs `graphmem.communities` in this process.

        Don't cache the value: it depends on what is installed in the store.
        """
        return None

    @property
    def explorer(self) -> Explorer | None:
        """The program for viewing the graph, or None if the store has none."""
        return None

    @property
    def vector_index(self) -> VectorIndex | None:
        """The store's own vector index, or None if it has none; it is synchronized like an external one."""
        return None

    @property
    def identity(self) -> Hashable:
        """Key that is equal for backends of the same store in this process; by default, each backend has its own."""
        return self

    @property
    def needs_upgrade(self) -> bool:
        """Whether it was opened without an upgrade that its schema needs: then only `diagnose` works."""
        return False

    @property
    def has_one_writer(self) -> bool:
        """Whether writers of different scopes wait for each other; their small writes then share a transaction."""
        return False

    def snapshot(self, work: Callable[[GraphBackend], T]) -> T:
        """Run `work` with a backend that reads a consistent snapshot of the store, and return its result.

        The default runs a write transaction, which blocks writers and may run `work` again.
        """
        return self.atomic(lambda: work(self))

    def get_entities(self, scopes: Sequence[Scope], ids: Sequence[str]) -> dict[str, Entity]:
        """Return the entities with these ids by id; absent ones are left out."""
        return {e.id: e for e in self.find_entities(scopes, EntityQuery(ids=tuple(ids)), limit=max(1, len(ids)))}

    def get_edges(self, scopes: Sequence[Scope], ids: Sequence[str]) -> dict[str, Edge]:
        """Return the edges with these ids by id, in any version; absent ones are left out."""
        query = EdgeQuery(ids=tuple(ids), versions="all")
        return {e.id: e for e in self.find_edges(scopes, query, limit=max(1, len(ids)))}

    def get_episodes(self, scopes: Sequence[Scope], ids: Sequence[str]) -> dict[str, Episode]:
        """Return the episodes with these ids by id; absent ones are left out."""
        return {e.id: e for e in self.find_episodes(scopes, EpisodeQuery(ids=tuple(ids)), limit=max(1, len(ids)))}

    def all_edges(self, scopes: Sequence[Scope], query: EdgeQuery, *, chunk: int = 1000) -> Iterator[Edge]:
        """Yield every edge that matches, read in pages of `chunk` rows."""
        return chain.from_iterable(pages(lambda after: self.find_edges(scopes, query, after=after, limit=chunk)))

    def find_active_facts(self, scope: Scope, *, after: str = "", limit: int = 1000) -> list[ActiveFact]:
        """Return a page of the active, not inferred facts between unarchived entities, in ascending order of id.

        Stores may override it to read only these columns, since community detection reads all facts of a scope.
        """
        found: list[ActiveFact] = []
        query = EdgeQuery(kinds=STATED_KINDS, versions="active")
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
        return chain.from_iterable(pages(lambda after: self.find_entities(scopes, query, after=after, limit=chunk)))

    def all_episodes(self, scopes: Sequence[Scope], query: EpisodeQuery, *, chunk: int = 1000) -> Iterator[Episode]:
        """Yield every episode that matches, read in pages of `chunk` rows."""
        return chain.from_iterable(pages(lambda after: self.find_episodes(scopes, query, after=after, limit=chunk)))

    def find_episode_ids(self, scopes: Sequence[Scope], query: EpisodeQuery) -> list[str]:
        """Return the ids of all episodes that match, in ascending order.

        Stores may override it to read only the ids: a search with filters calls it.
        """
        return [episode.id for episode in self.all_episodes(scopes, query)]

    def find_sessions(
        self, scopes: Sequence[Scope], query: EpisodeQuery, *, after: str | None = None, limit: int = 1000
    ) -> list[SessionSummary]:
        """Return a page of the sessions that matching episodes are of, in ascending order of id by code points.

        Only matching episodes count; those of one session id in several scopes count together. `after` is the id of
        the last session of the previous page; None is before the first, whose id may be "".

        Stores may override it: the default reads all matching episodes for each page.
        """
        parts = (
            SessionSummary(
                id=episode.session_id,
                episodes=1,
                first_at=episode.occurred_at,
                last_at=episode.occurred_at,
                speakers=() if episode.speaker is None else (episode.speaker,),
            )
            for episode in self.all_episodes(scopes, query)
            if episode.session_id is not None and (after is None or episode.session_id > after)
        )
        return combined_sessions(parts, limit)

    def all_mentions(
        self,
        scopes: Sequence[Scope],
        *,
        entity_ids: Sequence[str] | None = None,
        episode_ids: Sequence[str] | None = None,
        chunk: int = 10_000,
    ) -> list[Mention]:
        """Return every mention that `find_mentions` selects; the limit grows from `chunk` until it isn't reached."""
        while True:
            found = self.find_mentions(scopes, entity_ids=entity_ids, episode_ids=episode_ids, limit=chunk)
            if len(found) < chunk:
                return found
            chunk *= 10

    def all_communities(
        self, scopes: Sequence[Scope], query: CommunityQuery, *, chunk: int = 1000
    ) -> Iterator[Community]:
        """Yield every community that matches, read in pages of `chunk` rows."""
        return chain.from_iterable(pages(lambda after: self.find_communities(scopes, query, after=after, limit=chunk)))

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
        return chain.from_iterable(pages(lambda after: self.find_recalls(scopes, query, after=after, limit=chunk)))

    def all_merges(self, scopes: Sequence[Scope], query: MergeQuery, *, chunk: int = 500) -> Iterator[Merge]:
        """Yield every merge that matches, read in pages of `chunk` rows."""
        return chain.from_iterable(pages(lambda after: self.find_merges(scopes, query, after=after, limit=chunk)))

    def index_status(self, cursors: Sequence[IndexCursor]) -> list[IndexStatus]:
        """Return the index status of each scope. Called at the start of every search.

        Stores may override it to use one round trip.
        """
        return [
            IndexStatus(
                state=self.index_state(cursor.scope),
                waiting=bool(
                    self.find_unindexed(cursor.scope, "episode", after=cursor.episode, limit=1)
                    or self.find_unindexed(cursor.scope, "fact", after=cursor.fact, limit=1)
                ),
                entries=bool(self.read_index(cursor.scope, after=cursor.position, limit=1)),
                limited=bool(self.find_episodes([cursor.scope], EpisodeQuery(hidden_at=END_OF_TIME), limit=1)),
            )
            for cursor in cursors
        ]

    def entry_pages(
        self, scope: Scope, *, kind: IndexKind | None = None, after: int = 0, chunk: int = 1000
    ) -> Iterator[list[IndexEntry]]:
        """Yield the index entries of one kind, or of all, after a position, in pages of at most `chunk` rows."""
        while page := self.read_index(scope, kind=kind, after=after, limit=chunk):
            yield page
            if len(page) < chunk:
                return
            after = page[-1].position

    def all_entries(self, scope: Scope, *, kind: IndexKind | None = None, chunk: int = 1000) -> Iterator[IndexEntry]:
        """Yield every index entry of one kind, or of all, read in pages of `chunk` rows."""
        return chain.from_iterable(self.entry_pages(scope, kind=kind, chunk=chunk))

    def find_job_state(self, scope: Scope, job: str) -> JobState:
        """Return the state of a maintenance job in a scope; an empty `JobState` if there is none."""
        return next((state for state in self.find_job_states(scope) if state.job == job), JobState(job))

    def erasure_token(self, scope: Scope) -> str:
        """Return a token that changes on every erasure in the scope.

        Data read under an older token may quote erased text.
        """
        return self.find_job_state(scope, FORGETTING).cursor

    def write_unless_erased(self, scope: Scope, changes: Changes, *, since: str) -> bool:
        """Apply changes derived from earlier reads unless an erasure followed, that is, `erasure_token` isn't `since`.

        Return whether they were applied; raise the errors of `write`.
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
        Returns the page after an id; "" is before the first.
    """
    after = ""
    while page := read(after):
        yield page
        after = page[-1].id


class _Undone(Exception):
    """Raised to roll back the enclosing transaction."""


def run_and_roll_back(backend: GraphBackend, work: Callable[[], T]) -> T:
    """Run `work` in a transaction, roll it back and return the result of `work`."""
    done: list[T] = []

    def undone() -> None:
        done[:] = [work()]
        raise _Undone

    try:
        backend.atomic(undone)
    except _Undone:
        return done[0]
    raise AssertionError("a transaction that raises is undone")
