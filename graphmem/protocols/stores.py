"""Protocols of a store's roles, the parts of `GraphBackend`, and checks of arguments that every store makes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Protocol

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import (
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
    ForeignData,
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


def require_scope(scope: Scope, changes: Changes) -> None:
    """Raise `InvalidInput` for a row of another scope than that of the write."""
    for row in chain(changes.entities, changes.edges, changes.communities, changes.recalls, changes.merges):
        if row.scope is not scope and row.scope != scope:
            kind = "recall" if isinstance(row, RecallTrace) else type(row).__name__.lower()
            raise InvalidInput(f"{kind} {row.id}: its scope is {row.scope}, the write's is {scope}")


def require_no_cursor(after: str, *, newest_first: bool) -> None:
    """Raise `InvalidInput` for a cursor in a newest-first read, which has a single page."""
    if after and newest_first:
        raise InvalidInput(f"after={after!r}: a read with newest_first has one page")


def distinct_episodes(
    episodes: Iterable[Episode], known: Mapping[str, str]
) -> tuple[list[tuple[str, bool]], dict[str, Episode]]:
    """Return (id, whether it is new) for each episode of a call, and the new ones by id.

    An episode with an external id that is known, or that an earlier episode of the call has, has the id of that one.

    Parameters
    ----------
    episodes
        The episodes of a call.
    known
        External id → id of the stored episode that has it.

    Raises
    ------
    Conflict
        If two new episodes have the same id.
    """
    holders, new = dict(known), dict[str, Episode]()
    found: list[tuple[str, bool]] = []
    for episode in episodes:
        if episode.external_id is not None:
            if (holder := holders.get(episode.external_id)) is not None:
                found.append((holder, False))
                continue
            holders[episode.external_id] = episode.id
        if episode.id in new:
            raise Conflict(f"episode {episode.id} stands twice in the call")
        new[episode.id] = episode
        found.append((episode.id, True))
    return found, new


class EntityStore(Protocol):
    """Entities and their aliases."""

    @abstractmethod
    def resolve_names(self, scope: Scope, names: Sequence[str]) -> list[tuple[str, Entity]]:
        """Return (name, entity) for each entity, including archived ones, that has a normalized name as an alias.

        A name may match several entities of different types. Names without a match are left out. The
        canonical name of an entity is always one of its aliases: writing an entity requires writing that alias.
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
        """Find entities for a question by alias and by full text.

        Parameters
        ----------
        scopes
            Scopes to search.
        words
            Lower-case words of letters and digits; an entity matches if a word of its name or summary
            begins with one of them.
        phrases
            Normalized names; an entity matches if one of them is an alias of it.
        limit
            Maximum number of matches by alias (longest first, then by id), and separately by words (the best
            by the store's text score: BM25 with the name weighted 10 times the summary; ties are broken
            arbitrarily).

        Returns
        -------
        list of EntityHit
            Each entity once, in no particular order. Archived entities match by alias only.
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

        Set `last_retrieved_at` to `at`. Absent ids are ignored; duplicate ids count once; an entity at the end of two
        of the edges counts two accesses.
        """
        ...


class EpisodeStore(Protocol):
    """Episodes, their mentions, and the ingestion queue."""

    @abstractmethod
    def add_episodes(self, scope: Scope, episodes: Sequence[Episode]) -> list[tuple[str, bool]]:
        """Store episodes durably: after the return they survive a crash.

        Returns
        -------
        list of (id, created)
            In the order given. For an `external_id` that exists in the scope (or repeats within the call)
            nothing is stored, and the id of the first episode and False are returned.
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
        self,
        owner: str,
        *,
        now: datetime,
        until: datetime,
        limit: int,
        scopes: Sequence[Scope] | None = None,
        own: str | None = None,
    ) -> list[Episode]:
        """Claim unclaimed pending episodes with an elapsed `retry_at`, oldest id first.

        The claim of `owner` lasts until `until`, or until a `ProcessingResult` is written. An episode never has two
        claims. `scopes` None means the queue of the whole store, for a worker that serves all scopes; it is the only
        read that isn't limited to given scopes. With `own`, the first part of the owners of one process, scopes in
        which other owners have claims are left out: one process at a time extracts a scope.
        """
        ...

    @abstractmethod
    def claim_owners(self, now: datetime) -> list[str]:
        """Return the owners whose claims last beyond a time."""
        ...

    @abstractmethod
    def release_claims(self, owners: Sequence[str]) -> list[Episode]:
        """Release the claims of these owners; return the released episodes, oldest id first."""
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
    """Communities and memberships, including ended ones."""

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

        `after` is the last row of the previous page.
        """
        ...


class RecallStore(Protocol):
    """Recall traces."""

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
    """Graph traversal."""

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
        """Return the neighborhood of the seeds, ignoring edge direction, in at most ``hops + 1`` round trips.

        Hop h reads the edges of its frontier (the nodes at depth h - 1, initially the seeds): for each node the
        ``limits.per_node(len(frontier))`` best visible ones by confidence descending, then id. The confidence of a new
        node is the highest of the edges that reach it in that hop; the ``limits.max_frontier`` best new nodes by
        confidence, then id, get depth h and form the next frontier. Other new nodes and their edges are left out.
        Archived entities may be seeds but are never reached from other nodes.

        Parameters
        ----------
        scopes
            Scopes of the seeds, the edges and the nodes.
        seed_ids
            Entity ids; absent ones are left out. They have depth 0.
        hops
            Number of hops, at least 0 (only the seeds).
        edge_types
            Types to follow; empty means all.
        as_of
            Time of the read.
        limits
            Limits of the expansion.

        Returns
        -------
        Subgraph
            The nodes, and each edge read that connects two of them, once.
        """
        ...


class IndexStore(Protocol):
    """Vectors and names of episodes, facts and entities, stored with the rows in the same transactions.

    Entries are written as `Changes.index`: inserted, or replaced by (kind, key). The first complete entry sets the
    model of the scope; entries of another model, or of a row that isn't in the scope, then raise `InvalidInput`. An
    update of the row leaves its entry unchanged; removal of the row removes it.
    """

    @abstractmethod
    def index_state(self, scope: Scope) -> IndexState:
        """Return the model and the generation of a scope's index."""
        ...

    @abstractmethod
    def read_index(
        self, scope: Scope, *, kind: IndexKind | None = None, after: int = 0, limit: int = 1000
    ) -> list[IndexEntry]:
        """Return a page of entries of one kind, or of all, with positions above `after`, ordered by position.

        Later writes have higher positions, and no entry becomes visible below a visible one, so readers may resume
        from the last position read.
        """
        ...

    @abstractmethod
    def find_index(self, scope: Scope, kind: IndexKind, keys: Sequence[str]) -> list[IndexEntry]:
        """Return the entries with these keys, ordered by key; absent ones are left out."""
        ...

    @abstractmethod
    def find_unindexed(self, scope: Scope, kind: IndexKind, *, after: str = "", limit: int = 1000) -> list[str]:
        """Return ids of episodes, facts or entities after `after` that have no complete entry, in ascending order.

        Only active facts that weren't inferred, and unarchived entities, count; for names the result is empty.
        """
        ...

    @abstractmethod
    def reset_index(self, scope: Scope) -> int:
        """Remove all entries of a scope and its model, and increase its generation; return the number of entries."""
        ...


class MergeStore(Protocol):
    """The merge ledger: entity merges with the data to undo them."""

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

    def move_foreign(self, merge: Merge) -> ForeignData | None:  # noqa: ARG002  for stores that override it
        """Move data of others from the merged entity to the kept one, before the merge is written; return what moved.

        Stores that others can add relationships, labels or properties to override it, with `restore_foreign` and
        `count_foreign`; by default there are none.
        """
        return None

    def restore_foreign(self, merge: Merge) -> None:
        """Move data of others back to the merged entity, after an unmerge was written."""

    def count_foreign(self, scope: Scope, ids: Sequence[str]) -> int:  # noqa: ARG002  for stores that override it
        """Return the number of relationships of others that the rows of these entities and episodes have."""
        return 0


class UpkeepStore(Protocol):
    """Job states, queries of the maintenance jobs, and complete removal.

    A job state is written as `Changes.job_states`: inserted, or replaced by job.
    """

    @abstractmethod
    def find_job_states(self, scope: Scope) -> list[JobState]:
        """Return the job states of a scope, ordered by job."""
        ...

    @abstractmethod
    def decay_retrievals(
        self, scope: Scope, *, rate: float, idle_since: datetime, since: datetime | None, now: datetime, after: str = ""
    ) -> tuple[int, str]:
        """Decay the retrieval counts of a page of facts in all versions, in ascending order of id.

        `graphmem.models.decayed` defines the new counts.

        Parameters
        ----------
        scope
            The scope of the facts.
        rate
            λ, per day.
        idle_since
            Facts retrieved later keep their count.
        since, now
            Time of the last decay (None: never), and of this one.
        after
            The cursor returned with the previous page; "" for the first.

        Returns
        -------
        (int, str)
            Number of facts with a count above 0 in the page, and the cursor of the next page; "" after the last.
        """
        ...

    @abstractmethod
    def find_idle(self, scope: Scope, *, before: datetime, now: datetime, limit: int = 1000) -> list[str]:
        """Return ids of entities without a visible fact that were last seen and recorded at `before` or earlier, by id.

        Visibility is that of a read without `as_of` at `now` (`graphmem.models.is_visible`). Archived entities are
        left out, and those with a fact whose `expired_at` is later than `before`: reads of the past return it.
        """
        ...

    @abstractmethod
    def find_least_connected(self, scope: Scope, *, limit: int = 1000) -> list[str]:
        """Return ids of entities ordered by number of active facts, `last_seen_at` and id, for archiving above a cap.

        Archived entities are left out.
        """
        ...

    @abstractmethod
    def clear(self, scope: Scope) -> None:
        """Remove all rows of a scope, including job states and index.

        A store may use several transactions: rows that reference entities are removed before the entities, so that
        the remaining rows are consistent at any time, and a repeated call continues. `IndexState.generation` never
        repeats an earlier value of the scope.
        """
        ...

    @abstractmethod
    def scrub(self) -> bool:
        """Overwrite the remains of removed rows in the files, free pages and logs of the store.

        Returns
        -------
        bool
            False if other users of the store prevent it; call again later.
        """
        ...

    @abstractmethod
    def find_edges_of_episodes(self, scope: Scope, episode_ids: Sequence[str]) -> list[str]:
        """Return ids of the facts, in all versions, that any of these episodes stated, in ascending order."""
        ...
