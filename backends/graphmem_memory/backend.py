"""`MemoryBackend`: the union of the role classes, written to be obviously right rather than fast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import TypeVar

from graphmem.models import MembershipQuery, Move, Scope, StoreStats, mark_of
from graphmem.protocols import GraphBackend
from graphmem_memory.episodes import MemoryEpisodes
from graphmem_memory.graph import MemoryCommunities, MemoryEdges, MemoryEntities, MemoryTraces, MemoryTraversal
from graphmem_memory.tables import Store, episode_state
from graphmem_memory.upkeep import MemoryIndex, MemoryMerges, MemoryUpkeep
from graphmem_memory.writing import MemoryWrites

T = TypeVar("T")


class MemoryBackend(
    MemoryEntities,
    MemoryEdges,
    MemoryEpisodes,
    MemoryCommunities,
    MemoryTraces,
    MemoryIndex,
    MemoryMerges,
    MemoryUpkeep,
    MemoryTraversal,
    MemoryWrites,
    GraphBackend,
):
    """A store in dicts.

    Parameters
    ----------
    store
        The rows; several backends may share them.
    place
        The URL that `diagnose` shows.
    """

    def __init__(self, store: Store, place: str) -> None:
        super().__init__(store)
        self._place = place

    @property
    def identity(self) -> Hashable:
        """The rows."""
        return self._rows

    @property
    def has_one_writer(self) -> bool:
        """True: one lock covers all scopes."""
        return True

    def atomic(self, work: Callable[[], T]) -> T:
        """Run `work` with the store locked; an exception undoes its writes."""
        with self._writing():
            return work()

    def snapshot(self, work: Callable[[GraphBackend], T]) -> T:
        """Run `work` on a copy."""
        return work(MemoryBackend(self._store.copy(), self._place))

    def scopes(self) -> list[Scope]:
        """Return the scopes that hold anything, ordered by key."""
        with self._store.lock:
            store = self._store
            tables = (store.entities, store.episodes, store.communities, store.recalls, store.merges)
            held = dict.fromkeys(scope for table in tables for scope in table.scopes())
            return sorted(held, key=lambda scope: scope.key)

    def stats(self, scope: Scope) -> StoreStats:
        """Count the rows of a scope."""
        with self._store.lock:
            entities = list(self._store.entities.read([scope]))
            edges = list(self._store.edges.read([scope]))
            communities = list(self._store.communities.read([scope]))
            states = Counter(episode_state(e) for e in self._store.episodes.read([scope]))
            return StoreStats(
                entities=len(entities),
                archived_entities=sum(e.archived_at is not None for e in entities),
                aliases=self._store.aliases.count(scope),
                edges=len(edges),
                active_edges=sum(e.is_active for e in edges),
                episodes=states.total(),
                pending_episodes=states["pending"],
                failed_episodes=states["failed"],
                mentions=self._store.mentions.count(scope),
                communities=len(communities),
                ended_communities=sum(c.ended_at is not None for c in communities),
                community_members=self._members(scope),
                recalls=self._store.recalls.count(scope),
                edges_by_type=dict(Counter(e.edge_type.value for e in edges)),
                entities_by_type=dict(Counter(e.entity_type for e in entities)),
            )

    def _members(self, scope: Scope) -> int:
        query = MembershipQuery(level=0)
        return len(self.find_memberships([scope], query, limit=self._store.memberships.count(scope)))

    def read_move(self) -> Move | None:
        """Return the mark of a migration."""
        return self._store.move

    def set_move(self, move: Move | None, *, replacing: Move | None) -> bool:
        """Set the mark if it is `replacing`; running transactions hold the lock."""
        with self._store.lock:
            if mark_of(self._store.move) != mark_of(replacing):
                return False
            self._store.move = move
            return True

    def adopt(self, move: Move | None) -> None:
        """Set the mark under which this object writes."""
        self._adopted = mark_of(move)

    def diagnose(self) -> list[tuple[str, bool, str]]:
        """Return (check, whether it passed, detail)."""
        return [("place", True, self._place), ("durable", True, "no: it lives as long as the process")]

    def close(self) -> None:
        """Refuse further calls; the rows are freed with the last reference."""
        self._closed = True
