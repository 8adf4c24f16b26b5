"""What graphmem needs of its parts: stores and extractors. Implement these, no base class is shared.

A store implements `GraphBackend`, the union of the roles below, and proves itself with
`graphmem.testing.GraphBackendTests`. Members marked ``@abstractmethod`` are required; the others are
derived from them once, here. Rules that hold for all of them:

- **Scope**: every row has one and a read sees only the scopes it names. An id of another scope is
  treated as absent.
- **Bulk**: writes take many rows; all of them are stored or none.
- **Time**: reads take `as_of`; `graphmem.models.is_visible` is the definition of what they see.
- **Order**: pages are in ascending order of id, which is the order of creation, and go on behind
  the id given as `after`.
- **Threads**: any method may be called from any thread at any time.
- **Errors**: a store that is away, damaged or full raises a `BackendUnavailable`; a unique key that is
  taken raises `Conflict`; values were validated by the models before.
- **Empty**: in a query None doesn't restrict; an empty tuple allows nothing, so nothing is found.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar, runtime_checkable

from graphmem.models import (
    Alias,
    AsOf,
    Changes,
    Edge,
    EdgeQuery,
    EdgeType,
    Entity,
    EntityHit,
    EntityQuery,
    Episode,
    EpisodeQuery,
    ExpandLimits,
    Mention,
    Scope,
    StoreStats,
    Subgraph,
)

T = TypeVar("T")


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
            Without archived entities, each entity once, in no particular order.
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
        the others and the edges to them are left out. Archived entities are not entered.

        Parameters
        ----------
        scopes
            Scopes of the seeds, the edges and the nodes.
        seed_ids
            Entity ids; absent and archived ones are left out. They have depth 0.
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
            If a row names an entity, edge or episode that isn't in the scope (`superseded_by` is not looked up),
            carries another scope, or closes an edge before it began.
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
class GraphBackend(EntityStore, EdgeStore, EpisodeStore, Traversal, Maintenance, Protocol):
    """A store for memories: everything above, and what follows from it."""

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
        after = ""
        while page := self.find_edges(scopes, query, after=after, limit=chunk):
            yield from page
            after = page[-1].id

    def all_entities(self, scopes: Sequence[Scope], query: EntityQuery, *, chunk: int = 1000) -> Iterator[Entity]:
        """Yield every entity that matches, read in pages of `chunk` rows."""
        after = ""
        while page := self.find_entities(scopes, query, after=after, limit=chunk):
            yield from page
            after = page[-1].id


class Redactor(Protocol):
    """Takes personal data out of what is stored of a fact or a summary."""

    @abstractmethod
    def redact(self, text: str, names: Collection[str]) -> str:
        """Return the text without personal data; the canonical `names` it is about are exempt."""
        ...


# Extraction ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExtractedEntity:
    """An entity as an extractor named it: raw words, not yet cleaned or resolved."""

    name: str
    entity_type: str = "concept"
    summary: str = ""
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class ExtractedEdge:
    """A fact as an extractor stated it; its ends are names.

    `ended` True says that the fact stopped being true, at `valid_to` or else when the episode occurred.
    `edge_type` None means unstated. An end that isn't among the entities is one of `source_type` / `target_type`.
    """

    source: str
    relation: str
    target: str
    edge_type: str | None = None
    fact: str = ""
    confidence: float = 1.0
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    ended: bool = False
    source_type: str | None = None
    target_type: str | None = None


@dataclass(frozen=True, slots=True)
class Extraction:
    """What one episode says. `dropped` counts what was cut by grounding or limits, by reason."""

    entities: tuple[ExtractedEntity, ...] = ()
    edges: tuple[ExtractedEdge, ...] = ()
    dropped: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ExtractionRequest:
    """An episode to read, with the turns of its session before it, oldest first.

    `addressee` is the other speaker of the session where there is exactly one.
    """

    episode: Episode
    context: tuple[Episode, ...] = ()
    addressee: str | None = None


class Extractor(Protocol):
    """Turns episodes into entities and facts."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What stats and `doctor` call it."""
        ...

    @property
    @abstractmethod
    def batch_size(self) -> int:
        """How many episodes it likes to get at once."""
        ...

    @abstractmethod
    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Read episodes; never raises for one of them.

        Returns
        -------
        list
            In the order of the requests: an `Extraction`, or the error that kept it from being made.
        """
        ...
