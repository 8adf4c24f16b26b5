"""`Neo4jBackend`: every member of `GraphBackend` on a Neo4j database."""

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
from graphmem_neo4j import (
    communities,
    counts,
    doctor,
    edges,
    entities,
    indexing,
    merges,
    recalls,
    search,
    traversal,
    upkeep,
)
from graphmem_neo4j import episodes as queue
from graphmem_neo4j.browser import Neo4jBrowser
from graphmem_neo4j.connection import Database
from graphmem_neo4j.detector import GdsDetector, gds_detector
from graphmem_neo4j.vectors import Neo4jVectorIndex
from graphmem_neo4j.writing import apply_changes

T = TypeVar("T")

_UNLIMITED = 0.0  # seconds, for the server


class Neo4jBackend(GraphBackend):
    """A store in a Neo4j database, for several threads and processes at once.

    Parameters
    ----------
    database
        The open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._detector: GdsDetector | None = None

    @property
    def database(self) -> Database:
        """The connections to the server."""
        return self._database

    @property
    def community_detector(self) -> GdsDetector | None:
        """What finds communities by Graph Data Science; None where the server has none, or this process no client."""
        if self._detector is None:
            self._detector = gds_detector(self._database)
        return self._detector

    @property
    def explorer(self) -> Neo4jBrowser:
        """Neo4j Browser on this database."""
        return Neo4jBrowser(self._database)

    @property
    def vector_index(self) -> Neo4jVectorIndex:
        """The server's own vector index."""
        return Neo4jVectorIndex(self._database)

    # Entities -------------------------------------------------------------------------------------

    def resolve_names(self, scope: Scope, names: Sequence[str]) -> list[tuple[str, Entity]]:
        """Return (name, entity) for each entity of which a name is an alias."""
        return entities.resolve_names(self._database, scope, names)

    def find_entities(
        self, scopes: Sequence[Scope], query: EntityQuery, *, after: str = "", limit: int = 1000
    ) -> list[Entity]:
        """Return a page of the entities that match, in ascending order of id."""
        return entities.find_entities(self._database, scopes, query, after, limit)

    def find_aliases(self, scopes: Sequence[Scope], entity_ids: Sequence[str]) -> list[Alias]:
        """Return all aliases of these entities, ordered by entity id, then alias."""
        return entities.find_aliases(self._database, scopes, entity_ids)

    def search_entities(
        self, scopes: Sequence[Scope], *, words: Sequence[str], phrases: Sequence[str], limit: int
    ) -> list[EntityHit]:
        """Find entities for a question: by alias and by full text (`graphmem_neo4j.search`)."""
        return search.search_entities(self._database, scopes, words=words, phrases=phrases, limit=limit, now=utc_now())

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
        return edges.find_edges(self._database, scopes, query, after=after, limit=limit, newest_first=newest_first)

    def find_active_facts(self, scope: Scope, *, after: str = "", limit: int = 1000) -> list[ActiveFact]:
        """Return a page of the active facts between entities that aren't archived, in ascending order of id."""
        return edges.find_active_facts(self._database, scope, after, limit)

    def record_retrievals(self, scopes: Sequence[Scope], edge_ids: Sequence[str], at: datetime) -> None:
        """Count one retrieval of each edge and one access of each of its ends, atomically."""
        edges.record_retrievals(self._database, scopes, edge_ids, at)

    # Episodes -------------------------------------------------------------------------------------

    def add_episodes(self, scope: Scope, episodes: Sequence[Episode]) -> list[tuple[str, bool]]:
        """Store episodes durably; an external id that is known stores nothing."""
        return queue.add_episodes(self._database, scope, episodes)

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
        return queue.find_episodes(self._database, scopes, query, after=after, limit=limit, newest_first=newest_first)

    def claim_episodes(
        self, owner: str, *, now: datetime, until: datetime, limit: int, scopes: Sequence[Scope] | None = None
    ) -> list[Episode]:
        """Take pending episodes that are due and that nobody holds, oldest id first."""
        return queue.claim_episodes(self._database, owner, now=now, until=until, limit=limit, scopes=scopes)

    def claim_owners(self) -> list[str]:
        """Return the owners that hold episodes now."""
        return queue.claim_owners(self._database, utc_now())

    def release_claims(self, owners: Sequence[str]) -> int:
        """Give back what these owners hold; return how many episodes that were."""
        return queue.release_claims(self._database, owners)

    def find_mentions(
        self,
        scopes: Sequence[Scope],
        *,
        entity_ids: Sequence[str] | None = None,
        episode_ids: Sequence[str] | None = None,
        limit: int = 1000,
    ) -> list[Mention]:
        """Return mentions, ordered by (episode, entity) id."""
        return queue.find_mentions(self._database, scopes, entity_ids=entity_ids, episode_ids=episode_ids, limit=limit)

    # Communities and recalls ----------------------------------------------------------------------

    def find_communities(
        self, scopes: Sequence[Scope], query: CommunityQuery, *, after: str = "", limit: int = 1000
    ) -> list[Community]:
        """Return a page of the communities that match, in ascending order of id."""
        return communities.find_communities(self._database, scopes, query, after, limit)

    def find_memberships(
        self, scopes: Sequence[Scope], query: MembershipQuery, *, after: Membership | None = None, limit: int = 1000
    ) -> list[Membership]:
        """Return a page of the memberships that match, in ascending order of their keys."""
        return communities.find_memberships(self._database, scopes, query, after, limit)

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
        return recalls.find_recalls(self._database, scopes, query, after=after, limit=limit, newest_first=newest_first)

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
        return merges.find_merges(self._database, scopes, query, after=after, limit=limit, newest_first=newest_first)

    # Index ----------------------------------------------------------------------------------------

    def index_state(self, scope: Scope) -> IndexState:
        """Return the model and the generation of a scope's index."""
        return indexing.index_state(self._database, scope)

    def index_news(self, looks: Sequence[IndexLook]) -> list[IndexNews]:
        """Tell how the index of each scope stands, in one round trip."""
        return indexing.index_news(self._database, looks)

    def read_index(
        self, scope: Scope, *, kind: IndexKind | None = None, after: int = 0, limit: int = 1000
    ) -> list[IndexEntry]:
        """Return a page of entries behind a position."""
        return indexing.read_index(self._database, scope, kind, after, limit)

    def find_index(self, scope: Scope, kind: IndexKind, keys: Sequence[str]) -> list[IndexEntry]:
        """Return the entries with these keys, ordered by key."""
        return indexing.find_index(self._database, scope, kind, keys)

    def find_unindexed(self, scope: Scope, kind: IndexKind, *, after: str = "", limit: int = 1000) -> list[str]:
        """Return ids of rows without a complete entry, in ascending order."""
        return indexing.find_unindexed(self._database, scope, kind, after, limit)

    def reset_index(self, scope: Scope) -> int:
        """Remove all entries of a scope and its model."""
        return indexing.reset_index(self._database, scope)

    # Upkeep -----------------------------------------------------------------------------------------

    def find_marks(self, scope: Scope) -> list[Mark]:
        """Return the marks of a scope, ordered by job."""
        return upkeep.find_marks(self._database, scope)

    def decay_retrievals(
        self, scope: Scope, *, rate: float, idle_since: datetime, since: datetime | None, now: datetime, after: str = ""
    ) -> tuple[int, str]:
        """Lower the retrieval counts of a page of facts."""
        return upkeep.decay_retrievals(
            self._database, scope, rate=rate, idle_since=idle_since, since=since, now=now, after=after
        )

    def find_idle(self, scope: Scope, *, before: datetime, now: datetime, limit: int = 1000) -> list[str]:
        """Return ids of entities without visible facts that weren't seen for long."""
        return upkeep.find_idle(self._database, scope, before, now, limit)

    def find_least_connected(self, scope: Scope, *, limit: int = 1000) -> list[str]:
        """Return ids of entities, those with the fewest active facts first."""
        return upkeep.find_least_connected(self._database, scope, limit)

    def find_edges_of_episodes(self, scope: Scope, episode_ids: Sequence[str]) -> list[str]:
        """Return ids of the facts that one of these episodes stated; reads all facts of the scope."""
        return upkeep.find_edges_of_episodes(self._database, scope, episode_ids)

    def clear(self, scope: Scope) -> None:
        """Remove everything of a scope, its node included, in as many transactions as it takes."""
        upkeep.clear(self._database, scope)

    def scrub(self) -> bool:
        """Do nothing: files and logs are the server's, which overwrites them in its own time."""
        return True

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
        return traversal.expand(
            self._database,
            scopes,
            seed_ids,
            hops=hops,
            edge_types=edge_types,
            as_of=as_of,
            limits=limits or ExpandLimits(),
        )

    def write(self, scope: Scope, changes: Changes) -> None:
        """Apply `changes`, all or nothing."""
        apply_changes(self._database, scope, changes)

    def atomic(self, work: Callable[[], T]) -> T:
        """Run `work` in one write transaction; each scope that it touches is locked from the first touch to the end.

        Writers of one scope take turns; `work` is run again after a deadlock, a change of leader, or where another
        program than graphmem took a unique key.
        """
        return self._database.write(lambda _: work())

    def snapshot(self, work: Callable[[GraphBackend], T]) -> T:
        """Run `work` with each scope that it reads locked from then on: the server has no state to go on reading.

        However long it takes, it isn't cancelled; writers of these scopes wait.
        """
        return self._database.write(lambda _: work(self), timeout=_UNLIMITED)

    def scopes(self) -> list[Scope]:
        """Return the scopes that hold anything, ordered by key."""
        return counts.scopes(self._database)

    def stats(self, scope: Scope) -> StoreStats:
        """Count what a scope holds."""
        return counts.stats(self._database, scope)

    def diagnose(self) -> list[tuple[str, bool, str]]:
        """Return (what, whether it is well, detail) on the server, our part of it, and rights."""
        return doctor.diagnose(self._database)

    def close(self) -> None:
        """Close all connections; a second call does nothing."""
        self._database.close()


def _no_cursor_backwards(after: str, *, newest_first: bool) -> None:
    if after and newest_first:
        raise InvalidInput(f"after={after!r}: a read with newest_first has one page")
