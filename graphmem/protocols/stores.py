"""The roles of a store: each is one part of the contract of `GraphBackend`."""

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
    IndexEntry,
    IndexKind,
    IndexState,
    JobState,
    Membership,
    MembershipQuery,
    Mention,
    Merge,
    MergeQuery,
    RecallQuery,
    RecallTrace,
    Scope,
    Subgraph,
)


class EntityStore(Protocol):
    """Entities and the names they go by."""

    @abstractmethod
    def resolve_names(self, scope: Scope, names: Sequence[str]) -> list[tuple[str, Entity]]:
        """Return (name, entity) for each entity, archived ones too, of which a normalized name is an alias.

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
            Normalized names; an entity matches if one of them is an alias of it.
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

        They are held for `owner` until `until`, or until an `ProcessingResult` is written. Two callers never hold the
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
        """Collect the neighborhood of the seeds, edges taken both ways, in at most ``hops + 1`` round trips.

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


class IndexStore(Protocol):
    """Vectors and names of episodes, facts and entities, in the store itself: they can't drift from the rows.

    Entries are written as `Changes.index`: inserted, or replaced by (kind, key). The first complete one sets the model
    of the scope; one of another model is refused then (`InvalidInput`), as is one of a row that isn't in the scope. An
    entry stays as it is while its row changes, and goes with it.
    """

    @abstractmethod
    def index_state(self, scope: Scope) -> IndexState:
        """Return the model and the generation of a scope's index."""
        ...

    @abstractmethod
    def read_index(
        self, scope: Scope, *, kind: IndexKind | None = None, after: int = 0, limit: int = 1000
    ) -> list[IndexEntry]:
        """Return a page of entries of one kind, or of all, in ascending order of position, behind the position `after`.

        What is written later has a higher position, and no entry becomes visible below one that was visible before:
        whoever has read to a position only asks for what is behind it.
        """
        ...

    @abstractmethod
    def find_index(self, scope: Scope, kind: IndexKind, keys: Sequence[str]) -> list[IndexEntry]:
        """Return the entries with these keys, ordered by key; absent ones are left out."""
        ...

    @abstractmethod
    def find_unindexed(self, scope: Scope, kind: IndexKind, *, after: str = "", limit: int = 1000) -> list[str]:
        """Return ids of episodes, facts or entities behind `after` that have no complete entry, in ascending order.

        Of facts those that are active, of entities those that are not archived; names are never missing.
        """
        ...

    @abstractmethod
    def reset_index(self, scope: Scope) -> int:
        """Remove all entries of a scope and its model, raise its generation; return how many entries that were."""
        ...


class MergeStore(Protocol):
    """What was taken for one entity, and how to undo it."""

    @abstractmethod
    def find_merges(
        self,
        scopes: Sequence[Scope],
        query: MergeQuery,
        *,
        after: str = "",
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[Merge]:
        """Return a page of the merges that match, in ascending order of id.

        With `newest_first` the order is by id descending, and `after` must be empty. A merge outlives its entities.
        """
        ...


class UpkeepStore(Protocol):
    """Marks of upkeep, what it looks for, and complete removal.

    A mark is written as `Changes.marks`: inserted, or replaced by job.
    """

    @abstractmethod
    def find_job_states(self, scope: Scope) -> list[JobState]:
        """Return the marks of a scope, ordered by job."""
        ...

    @abstractmethod
    def decay_retrievals(
        self, scope: Scope, *, rate: float, idle_since: datetime, since: datetime | None, now: datetime, after: str = ""
    ) -> tuple[int, str]:
        """Lower the retrieval counts of a page of facts, in ascending order of id behind `after`, all versions.

        `graphmem.models.decayed` says to what.

        Parameters
        ----------
        scope
            Whose facts.
        rate
            λ, for one day.
        idle_since
            What was retrieved later keeps its count.
        since, now
            When counts were lowered last (None: never), and up to when they are now.
        after
            The cursor that the page before gave.

        Returns
        -------
        (int, str)
            How many facts with a count above 0 the page had, and the cursor for the next page; "" after the last.
        """
        ...

    @abstractmethod
    def find_idle(self, scope: Scope, *, before: datetime, now: datetime, limit: int = 1000) -> list[str]:
        """Return ids of entities last seen and recorded at `before` or earlier that no visible fact is about, by id.

        Visible is what a read without `as_of` sees at `now` (`graphmem.models.is_visible`). Archived entities are left
        out.
        """
        ...

    @abstractmethod
    def find_least_connected(self, scope: Scope, *, limit: int = 1000) -> list[str]:
        """Return ids of entities in the order of active facts, `last_seen_at` and id: what a cap archives first.

        Archived ones are left out.
        """
        ...

    @abstractmethod
    def clear(self, scope: Scope) -> None:
        """Remove everything of a scope, marks and index included.

        A store that can't do it in one transaction takes several: facts and what hangs on entities go before
        entities, so that what is left is right at any time, and run again it goes on. `IndexState.generation` never
        takes a value for the scope that it had before.
        """
        ...

    @abstractmethod
    def scrub(self) -> bool:
        """Overwrite what removed rows left behind in files, free pages and logs that this store keeps.

        Returns
        -------
        bool
            False if others use the store so that it can't be done now; run it again later.
        """
        ...

    @abstractmethod
    def find_edges_of_episodes(self, scope: Scope, episode_ids: Sequence[str]) -> list[str]:
        """Return ids of the facts, in all versions, that one of these episodes stated, in ascending order."""
        ...
