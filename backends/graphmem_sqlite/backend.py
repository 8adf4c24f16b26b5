"""`SQLiteBackend`: every member of `GraphBackend` on one file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from graphmem.errors import InvalidInput
from graphmem.models import (
    ActiveFact,
    Alias,
    AsOf,
    Changes,
    Community,
    CommunityQuery,
    Edge,
    EdgeQuery,
    EdgeType,
    Entity,
    EntityHit,
    EntityQuery,
    Episode,
    EpisodeQuery,
    ExpandLimits,
    IndexEntry,
    IndexKind,
    IndexLook,
    IndexNews,
    IndexState,
    Mark,
    Membership,
    MembershipQuery,
    Mention,
    Merge,
    MergeQuery,
    RecallQuery,
    RecallTrace,
    Scope,
    StoreStats,
    Subgraph,
    utc_now,
)
from graphmem.protocols import GraphBackend
from graphmem_sqlite import communities, counts, edges, entities, indexing, merges, recalls, search, traversal, upkeep
from graphmem_sqlite import episodes as queue
from graphmem_sqlite.connection import Database
from graphmem_sqlite.writing import apply_changes

T = TypeVar("T")


class SQLiteBackend(GraphBackend):
    """A store in one SQLite file, for several threads and processes at once.

    Parameters
    ----------
    database
        The open file.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def database(self) -> Database:
        """The connections to the file."""
        return self._database

    # Entities -------------------------------------------------------------------------------------

    def resolve_names(self, scope: Scope, names: Sequence[str]) -> list[tuple[str, Entity]]:
        """Return (name, entity) for each entity of which a name is an alias."""
        with self._database.reading() as connection:
            return entities.resolve_names(connection, scope, names)

    def find_entities(
        self, scopes: Sequence[Scope], query: EntityQuery, *, after: str = "", limit: int = 1000
    ) -> list[Entity]:
        """Return a page of the entities that match, in ascending order of id."""
        with self._database.reading() as connection:
            return entities.find_entities(connection, scopes, query, after, limit)

    def find_aliases(self, scopes: Sequence[Scope], entity_ids: Sequence[str]) -> list[Alias]:
        """Return all aliases of these entities, ordered by entity id, then alias."""
        with self._database.reading() as connection:
            return entities.find_aliases(connection, scopes, entity_ids)

    def search_entities(
        self, scopes: Sequence[Scope], *, words: Sequence[str], phrases: Sequence[str], limit: int
    ) -> list[EntityHit]:
        """Find entities for a question: by alias and by full text (`graphmem_sqlite.search`)."""
        with self._database.reading() as connection:
            return search.search_entities(connection, scopes, words=words, phrases=phrases, limit=limit, now=utc_now())

    # Edges ----------------------------------------------------------------------------------------

    def find_edges(
        self,
        scopes: Sequence[Scope],
        query: EdgeQuery,
        *,
        after: str = "",
        limit: int = 1000,
        newest_first: bool = False,
    ) -> list[Edge]:
        """Return a page of the edges that match."""
        _no_cursor_backwards(after, newest_first=newest_first)
        with self._database.reading() as connection:
            return edges.find_edges(connection, scopes, query, after=after, limit=limit, newest_first=newest_first)

    def find_active_facts(self, scope: Scope, *, after: str = "", limit: int = 1000) -> list[ActiveFact]:
        """Return a page of the active facts between entities that aren't archived, in ascending order of id."""
        with self._database.reading() as connection:
            return edges.find_active_facts(connection, scope, after, limit)

    def record_retrievals(self, scopes: Sequence[Scope], edge_ids: Sequence[str], at: datetime) -> None:
        """Count one retrieval of each edge and one access of each of its ends, atomically."""
        with self._database.writing() as connection:
            edges.record_retrievals(connection, scopes, edge_ids, at)

    # Episodes -------------------------------------------------------------------------------------

    def add_episodes(self, scope: Scope, episodes: Sequence[Episode]) -> list[tuple[str, bool]]:
        """Store episodes durably; an external id that is known stores nothing."""
        with self._database.writing() as connection:
            return queue.add_episodes(connection, scope, episodes)

    def find_episodes(
        self,
        scopes: Sequence[Scope],
        query: EpisodeQuery,
        *,
        after: str = "",
        limit: int = 1000,
        newest_first: bool = False,
    ) -> list[Episode]:
        """Return a page of the episodes that match."""
        _no_cursor_backwards(after, newest_first=newest_first)
        with self._database.reading() as connection:
            return queue.find_episodes(connection, scopes, query, after=after, limit=limit, newest_first=newest_first)

    def claim_episodes(
        self, owner: str, *, now: datetime, until: datetime, limit: int, scopes: Sequence[Scope] | None = None
    ) -> list[Episode]:
        """Take pending episodes that are due and that nobody holds, oldest id first."""
        with self._database.writing() as connection:
            return queue.claim_episodes(connection, owner, now=now, until=until, limit=limit, scopes=scopes)

    def claim_owners(self) -> list[str]:
        """Return the owners that hold episodes now."""
        with self._database.reading() as connection:
            return queue.claim_owners(connection, utc_now())

    def release_claims(self, owners: Sequence[str]) -> int:
        """Give back what these owners hold; return how many episodes that were."""
        with self._database.writing() as connection:
            return queue.release_claims(connection, owners)

    def find_mentions(
        self,
        scopes: Sequence[Scope],
        *,
        entity_ids: Sequence[str] | None = None,
        episode_ids: Sequence[str] | None = None,
        limit: int = 1000,
    ) -> list[Mention]:
        """Return mentions, ordered by (episode, entity) id."""
        with self._database.reading() as connection:
            return queue.find_mentions(connection, scopes, entity_ids=entity_ids, episode_ids=episode_ids, limit=limit)

    # Communities and recalls ----------------------------------------------------------------------

    def find_communities(
        self, scopes: Sequence[Scope], query: CommunityQuery, *, after: str = "", limit: int = 1000
    ) -> list[Community]:
        """Return a page of the communities that match, in ascending order of id."""
        with self._database.reading() as connection:
            return communities.find_communities(connection, scopes, query, after, limit)

    def find_memberships(
        self, scopes: Sequence[Scope], query: MembershipQuery, *, after: Membership | None = None, limit: int = 1000
    ) -> list[Membership]:
        """Return a page of the memberships that match, in ascending order of their keys."""
        with self._database.reading() as connection:
            return communities.find_memberships(connection, scopes, query, after, limit)

    def find_recalls(
        self,
        scopes: Sequence[Scope],
        query: RecallQuery,
        *,
        after: str = "",
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[RecallTrace]:
        """Return a page of the traces that match."""
        _no_cursor_backwards(after, newest_first=newest_first)
        with self._database.reading() as connection:
            return recalls.find_recalls(connection, scopes, query, after=after, limit=limit, newest_first=newest_first)

    def find_merges(
        self,
        scopes: Sequence[Scope],
        query: MergeQuery,
        *,
        after: str = "",
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[Merge]:
        """Return a page of the merges that match."""
        _no_cursor_backwards(after, newest_first=newest_first)
        with self._database.reading() as connection:
            return merges.find_merges(connection, scopes, query, after=after, limit=limit, newest_first=newest_first)

    # Index ----------------------------------------------------------------------------------------

    def index_state(self, scope: Scope) -> IndexState:
        """Return the model and the generation of a scope's index."""
        with self._database.reading() as connection:
            return indexing.index_state(connection, scope)

    def index_news(self, looks: Sequence[IndexLook]) -> list[IndexNews]:
        """Tell how the index of each scope stands, in one statement."""
        with self._database.reading() as connection:
            return indexing.index_news(connection, looks)

    def read_index(
        self, scope: Scope, *, kind: IndexKind | None = None, after: int = 0, limit: int = 1000
    ) -> list[IndexEntry]:
        """Return a page of entries behind a position."""
        with self._database.reading() as connection:
            return indexing.read_index(connection, scope, kind, after, limit)

    def find_index(self, scope: Scope, kind: IndexKind, keys: Sequence[str]) -> list[IndexEntry]:
        """Return the entries with these keys, ordered by key."""
        with self._database.reading() as connection:
            return indexing.find_index(connection, scope, kind, keys)

    def find_unindexed(self, scope: Scope, kind: IndexKind, *, after: str = "", limit: int = 1000) -> list[str]:
        """Return ids of rows without a complete entry, in ascending order."""
        with self._database.reading() as connection:
            return indexing.find_unindexed(connection, scope, kind, after, limit)

    def reset_index(self, scope: Scope) -> int:
        """Remove all entries of a scope and its model."""
        with self._database.writing() as connection:
            return indexing.reset_index(connection, scope)

    # Upkeep -----------------------------------------------------------------------------------------

    def find_marks(self, scope: Scope) -> list[Mark]:
        """Return the marks of a scope, ordered by job."""
        with self._database.reading() as connection:
            return upkeep.find_marks(connection, scope)

    def decay_retrievals(
        self, scope: Scope, *, rate: float, idle_since: datetime, since: datetime | None, now: datetime, after: str = ""
    ) -> tuple[int, str]:
        """Lower the retrieval counts of a page of facts."""
        with self._database.writing() as connection:
            return upkeep.decay_retrievals(
                connection, scope, rate=rate, idle_since=idle_since, since=since, now=now, after=after
            )

    def find_idle(self, scope: Scope, *, before: datetime, now: datetime, limit: int = 1000) -> list[str]:
        """Return ids of entities without visible facts that weren't seen for long."""
        with self._database.reading() as connection:
            return upkeep.find_idle(connection, scope, before, now, limit)

    def find_least_connected(self, scope: Scope, *, limit: int = 1000) -> list[str]:
        """Return ids of entities, those with the fewest active facts first."""
        with self._database.reading() as connection:
            return upkeep.find_least_connected(connection, scope, limit)

    def find_edges_of_episodes(self, scope: Scope, episode_ids: Sequence[str]) -> list[str]:
        """Return ids of the facts that one of these episodes stated."""
        with self._database.reading() as connection:
            return upkeep.find_edges_of_episodes(connection, scope, episode_ids)

    def clear(self, scope: Scope) -> None:
        """Remove everything of a scope, its name included, in one transaction."""
        with self._database.writing() as connection:
            upkeep.clear(connection, scope)

    def scrub(self) -> bool:
        """Write full text and the file anew and empty the log: it takes as long as copying the file."""
        with self._database.writing() as connection:
            upkeep.merge_words(connection)
        return self._database.write_anew()

    # Traversal and maintenance --------------------------------------------------------------------

    def expand(
        self,
        scopes: Sequence[Scope],
        seed_ids: Sequence[str],
        *,
        hops: int,
        edge_types: Sequence[EdgeType] = (),
        as_of: AsOf | None = None,
        limits: ExpandLimits | None = None,
    ) -> Subgraph:
        """Collect the neighbourhood of the seeds, edges taken both ways, one statement a hop."""
        with self._database.reading() as connection:
            return traversal.expand(
                connection,
                scopes,
                seed_ids,
                hops=hops,
                edge_types=edge_types,
                as_of=as_of,
                limits=limits or ExpandLimits(),
            )

    def write(self, scope: Scope, changes: Changes) -> None:
        """Apply `changes`, all or nothing."""
        with self._database.writing() as connection:
            apply_changes(connection, scope, changes)

    def atomic(self, work: Callable[[], T]) -> T:
        """Run `work` in one write transaction, under the lock that keeps other threads and processes out."""
        with self._database.transaction():
            return work()

    def snapshot(self, work: Callable[[GraphBackend], T]) -> T:
        """Run `work` on one state of the file; writers don't wait for it, the log grows until it is done."""
        with self._database.snapshot():
            return work(self)

    def scopes(self) -> list[Scope]:
        """Return the scopes that hold anything, ordered by key."""
        with self._database.reading() as connection:
            return counts.scopes(connection)

    def stats(self, scope: Scope) -> StoreStats:
        """Count what a scope holds."""
        with self._database.reading() as connection:
            return counts.stats(connection, scope)

    def diagnose(self) -> list[tuple[str, bool, str]]:
        """Return (what, whether it is well, detail); the integrity check reads the whole file."""
        with self._database.reading() as connection:
            return [("place", True, str(self._database.place.path)), *counts.diagnose(connection)]

    def close(self) -> None:
        """Close all connections; a second call does nothing."""
        self._database.close()


def _no_cursor_backwards(after: str, *, newest_first: bool) -> None:
    if after and newest_first:
        raise InvalidInput(f"after={after!r}: a read with newest_first has one page")
