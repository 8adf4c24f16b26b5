"""The roles of a store that hold and find rows, and the one that walks the graph."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from graphmem.models import (
    Alias,
    AsOf,
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
    Membership,
    MembershipQuery,
    Mention,
    RecallQuery,
    RecallTrace,
    Scope,
    Subgraph,
)


class EntityStore(Protocol):
    """Entities and the names they go by."""

    @abstractmethod
    def resolve_names(self, scope: Scope, names: Sequence[str]) -> list[tuple[str, Entity]]:
        """Return (name, entity) for each entity, archived ones too, of which a normalised name is an alias.

        A name may stand for several entities, of different types. Names without one are left out. The
        canonical name of an entity is always one of its aliases: whoever writes an entity writes that alias.
        """
        ...

    @abstractmethod
    def find_entities(
        self, scopes: Sequence[Scope], query: EntityQuery, *, after: str = "", limit: int = 1000
    ) -> list[Entity]:
        """Return a page of the entities that match, in ascending order of id."""
        ...

    @abstractmethod
    def find_aliases(self, scopes: Sequence[Scope], entity_ids: Sequence[str]) -> list[Alias]:
        """Return all aliases of these entities, ordered by entity id, then alias."""
        ...

    @abstractmethod
    def search_entities(
        self, scopes: Sequence[Scope], *, words: Sequence[str], phrases: Sequence[str], limit: int
    ) -> list[EntityHit]:
        """Find entities for a question: by alias and by full text.

        Parameters
        ----------
        scopes
            Where to look.
        words
            Lower-case words of letters and digits; an entity matches if a word of its name or summary
            begins with one of them.
        phrases
            Normalised names; an entity matches if one of them is an alias of it.
        limit
            At most so many by alias (longest first, then by id) and as many by words (the best by the
            store's own text score: bm25 with the name weighted 10 times the summary; which ones of equal
            score is open).

        Returns
        -------
        list of EntityHit
            Each entity once, in no particular order. Archived ones are found by alias alone: a question names them.
        """
        ...


class EdgeStore(Protocol):
    """Facts, in all their versions."""

    @abstractmethod
    def find_edges(
        self,
        scopes: Sequence[Scope],
        query: EdgeQuery,
        *,
        after: str = "",
        limit: int = 1000,
        newest_first: bool = False,
    ) -> list[Edge]:
        """Return a page of the edges that match, in ascending order of id.

        With `newest_first` the order is by valid_from, recorded_at and id, all descending, and `after` must be empty.
        """
        ...

    @abstractmethod
    def record_retrievals(self, scopes: Sequence[Scope], edge_ids: Sequence[str], at: datetime) -> None:
        """Count one retrieval of each edge and one access of each of its ends, atomically.

        Sets `last_retrieved_at` to `at`. Ids that are absent are ignored; an id given twice counts once; an entity
        at the end of two of the edges counts two accesses.
        """
        ...


class EpisodeStore(Protocol):
    """Episodes, their mentions, and the queue that they are."""

    @abstractmethod
    def add_episodes(self, scope: Scope, episodes: Sequence[Episode]) -> list[tuple[str, bool]]:
        """Store episodes durably: on return they survive a crash.

        Returns
        -------
        list of (id, created)
            In the order given. An `external_id` that the scope holds already (or that stands twice in
            the call) stores nothing and gives the id of the first one and False.
        """
        ...

    @abstractmethod
    def find_episodes(
        self,
        scopes: Sequence[Scope],
        query: EpisodeQuery,
        *,
        after: str = "",
        limit: int = 1000,
        newest_first: bool = False,
    ) -> list[Episode]:
        """Return a page of the episodes that match, in ascending order of id.

        With `newest_first` the order is by id descending, and `after` must be empty.
        """
        ...

    @abstractmethod
    def claim_episodes(
        self, owner: str, *, now: datetime, until: datetime, limit: int, scopes: Sequence[Scope] | None = None
    ) -> list[Episode]:
        """Take pending episodes whose `retry_at` has come and that nobody holds, oldest id first.

        They are held for `owner` until `until`, or until an `Outcome` is written. Two callers never hold the
        same episode. `scopes` None means the queue of the whole store: the only read that isn't bound to a scope,
        for the worker that serves them all; each episode carries its own.
        """
        ...

    @abstractmethod
    def claim_owners(self) -> list[str]:
        """Return the owners that hold episodes now."""
        ...

    @abstractmethod
    def release_claims(self, owners: Sequence[str]) -> int:
        """Give back what these owners hold; return how many episodes that were."""
        ...

    @abstractmethod
    def find_mentions(
        self,
        scopes: Sequence[Scope],
        *,
        entity_ids: Sequence[str] | None = None,
        episode_ids: Sequence[str] | None = None,
        limit: int = 1000,
    ) -> list[Mention]:
        """Return mentions of these entities, or in these episodes, or both; ordered by (episode, entity) id."""
        ...


class CommunityStore(Protocol):
    """Communities and their members, in all their states."""

    @abstractmethod
    def find_communities(
        self, scopes: Sequence[Scope], query: CommunityQuery, *, after: str = "", limit: int = 1000
    ) -> list[Community]:
        """Return a page of the communities that match, in ascending order of id."""
        ...

    @abstractmethod
    def find_memberships(
        self, scopes: Sequence[Scope], query: MembershipQuery, *, after: Membership | None = None, limit: int = 1000
    ) -> list[Membership]:
        """Return a page of the memberships that match, in ascending order of `Membership.key`.

        `after` is the last row of the page before.
        """
        ...


class RecallStore(Protocol):
    """What recalls left to be asked about later."""

    @abstractmethod
    def find_recalls(
        self,
        scopes: Sequence[Scope],
        query: RecallQuery,
        *,
        after: str = "",
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[RecallTrace]:
        """Return a page of the traces that match, each with all of its rows, in ascending order of id.

        With `newest_first` the order is by id descending, and `after` must be empty.
        """
        ...


class Traversal(Protocol):
    """The one way to walk the graph."""

    @abstractmethod
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
        """Collect the neighbourhood of the seeds, edges taken both ways, in at most ``hops + 1`` round trips.

        Hop h reads the edges of its frontier (the nodes at depth h - 1; the seeds first), of each node the
        ``limits.per_node(len(frontier))`` best visible ones by confidence descending, then id. A node that was
        not seen before is reached with the best confidence of the edges read in that hop; of the
        new ones the ``limits.max_frontier`` best by that confidence, then id, get depth h and are the next frontier;
        the others and the edges to them are left out. Archived entities are seeds, but are not entered from others.

        Parameters
        ----------
        scopes
            Scopes of the seeds, the edges and the nodes.
        seed_ids
            Entity ids; absent ones are left out. They have depth 0.
        hops
            Rounds, at least 0 (just the seeds).
        edge_types
            Types to follow; none means all.
        as_of
            The moment that is seen.
        limits
            Bounds of the work.

        Returns
        -------
        Subgraph
            The nodes, and of the edges that were read those of which both ends are among the nodes, each once.
        """
        ...
