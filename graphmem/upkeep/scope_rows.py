"""Rows of a scope: look-ups that merge, unmerge and erasure share, and JSON for exports and checksums."""

from __future__ import annotations

import base64
import hashlib
import json
from array import array
from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard, cast

from graphmem.errors import InvalidInput, NotFound
from graphmem.ingest.supersession.rules import day_before
from graphmem.models import (
    Alias,
    Community,
    CommunityQuery,
    Edge,
    EdgeQuery,
    Entity,
    EntityQuery,
    Episode,
    EpisodeQuery,
    IndexEntry,
    JobState,
    Membership,
    MembershipQuery,
    Mention,
    Merge,
    MergeQuery,
    Model,
    RecallQuery,
    RecallTrace,
    Scope,
)
from graphmem.protocols import GraphBackend, pages
from graphmem.text import counted
from graphmem.text.normalize import canonical

RowKind = Literal[
    "episode", "entity", "alias", "edge", "mention", "community", "membership", "recall", "merge", "index", "mark"
]
Row = Model | IndexEntry | JobState
RowStream = Iterator[tuple[RowKind, Row]]

PAGE = 1000


@dataclass(frozen=True, slots=True)
class RowTable:
    """Where rows of a kind are read and written.

    Attributes
    ----------
    model
        Class of the rows.
    part
        Field of `Changes` for the rows; episodes are stored by `add_episodes`.
    read
        Yields the rows of a scope in ascending order of their keys, communities level by level.
    """

    model: type[Any]
    part: str
    read: Callable[[GraphBackend, Scope], Iterable[Row]]

    @property
    def has_scope(self) -> bool:
        """Whether rows name their scope."""
        return issubclass(self.model, Model) and "scope" in self.model.model_fields


def _aliases(store: GraphBackend, scope: Scope) -> Iterator[Alias]:
    query = EntityQuery(archived=True)
    for page in pages(lambda after: store.find_entities([scope], query, after=after, limit=PAGE)):
        rows = store.find_aliases([scope], [entity.id for entity in page])
        yield from sorted(rows, key=lambda row: (row.entity_id, row.alias, row.entity_type))


def _mentions(store: GraphBackend, scope: Scope) -> Iterator[Mention]:
    for page in pages(lambda after: store.find_episodes([scope], EpisodeQuery(), after=after, limit=PAGE)):
        rows = store.all_mentions([scope], episode_ids=[episode.id for episode in page])
        yield from sorted(rows, key=lambda row: (row.episode_id, row.entity_id))


def _communities(store: GraphBackend, scope: Scope) -> Iterator[Community]:
    """Yield communities level by level: the parent of a community is on a level before."""
    for level in sorted({c.level for c in store.all_communities([scope], CommunityQuery(ended=True))}):
        yield from store.all_communities([scope], CommunityQuery(level=level, ended=True))


TABLES: dict[RowKind, RowTable] = {
    "episode": RowTable(Episode, "", lambda store, scope: store.all_episodes([scope], EpisodeQuery(), chunk=PAGE)),
    "entity": RowTable(
        Entity, "entities", lambda store, scope: store.all_entities([scope], EntityQuery(archived=True), chunk=PAGE)
    ),
    "alias": RowTable(Alias, "aliases", _aliases),
    "edge": RowTable(
        Edge, "edges", lambda store, scope: store.all_edges([scope], EdgeQuery(versions="all"), chunk=PAGE)
    ),
    "mention": RowTable(Mention, "mentions", _mentions),
    "community": RowTable(Community, "communities", _communities),
    "membership": RowTable(
        Membership, "memberships", lambda store, scope: store.all_memberships([scope], MembershipQuery(ended=True))
    ),
    "recall": RowTable(
        RecallTrace, "recalls", lambda store, scope: store.all_recalls([scope], RecallQuery(), chunk=PAGE)
    ),
    "merge": RowTable(
        Merge, "merges", lambda store, scope: store.all_merges([scope], MergeQuery(undone=True), chunk=PAGE)
    ),
    "index": RowTable(IndexEntry, "index", lambda store, scope: store.all_entries(scope, chunk=PAGE)),
    # the name of job states in files of version 1
    "mark": RowTable(JobState, "job_states", lambda store, scope: store.find_job_states(scope)),
}
"""In export order: a row references only rows before it."""

CONTENT = frozenset(TABLES) - {"index", "mark"}
"""Kinds that are part of a checksum. The index can be rebuilt, and job states are the progress of upkeep."""

_SCOPE: dict[str, Any] = {"scope": True}
_NO_SCOPE: dict[RowKind, Any] = {
    **{kind: {"scope"} for kind, table in TABLES.items() if table.has_scope},
    "merge": {
        **_SCOPE,
        "kept": _SCOPE,
        "merged": _SCOPE,
        "edges": {"__all__": _SCOPE},
        "folded": {"__all__": {"edge": _SCOPE, "into": _SCOPE}},
    },
}


# Rows as JSON -------------------------------------------------------------------------------------


def to_json(kind: RowKind, row: Row) -> str:
    """Return a row as JSON without its scope: the fields of the model in their order, without those that are None."""
    if isinstance(row, IndexEntry):
        return json.dumps(
            {
                "kind": row.kind,
                "key": row.key,
                "model": row.model,
                "vectors": base64.b64encode(row.vectors).decode(),
                "pieces": base64.b64encode(row.pieces).decode(),
                "detail": row.detail,
                "complete": row.complete,
            },
            ensure_ascii=False,
            separators=(",", ":"),
        )
    if isinstance(row, JobState):
        times = {
            name: moment.isoformat() for name in ("done_at", "begun_at") if (moment := getattr(row, name)) is not None
        }
        fields = {"job": row.job, "episodes": row.episodes, "cursor": row.cursor, **times}
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    excluded = _NO_SCOPE.get(kind)
    if isinstance(row, Episode) and not row.attachments:
        excluded = {"scope", "attachments"}
    elif isinstance(row, Edge):
        excluded = {"scope", *(name for name in ("ends", "beginnings") if not getattr(row, name))}
    return row.model_dump_json(exclude_none=True, exclude=excluded)


def from_json(kind: RowKind, fields: Mapping[str, Any], scope: Scope) -> Row:
    """Return a row from the fields that `to_json` wrote, in the given scope.

    Raises
    ------
    InvalidInput, KeyError, TypeError, ValueError
        If the fields aren't a valid row.
    """
    if kind == "index":
        values: dict[str, Any] = {**fields, "vectors": _bytes(fields["vectors"]), "pieces": _bytes(fields["pieces"])}
        return IndexEntry(**values)
    if kind == "mark":
        return JobState(**{**fields, **_times(fields)})
    if kind == "merge":
        return Merge(scope=scope, **_scoped(fields, scope))
    table = TABLES[kind]
    return table.model(scope=scope, **fields) if table.has_scope else table.model(**fields)


def repair_ends(kind: RowKind, fields: Mapping[str, Any]) -> int:
    """Repair the facts of a row of an export that end before they begin; return their number.

    Earlier versions stored such facts. One that was told as past begins on the day before its end, as all that is known
    is that it had begun by then; another one never held.
    """
    edges: list[Any] = [fields] if kind == "edge" else []
    if kind == "merge":
        edges = [*fields["edges"], *(edge for pair in fields["folded"] for edge in pair.values())]
    return sum([isinstance(edge, dict) and _repair_end(cast("dict[str, Any]", edge)) for edge in edges])


def _repair_end(edge: dict[str, Any]) -> bool:
    from graphmem.inputs import to_time

    if edge.get("valid_to") is None:
        return False
    begin, end = to_time(edge["valid_from"]), to_time(edge["valid_to"])
    if end >= begin:
        return False
    if edge.get("expired_at") is None:
        edge.update(valid_from=day_before(end).isoformat(), valid_from_assumed=True)
    else:
        edge.update(valid_to=edge["valid_from"])
    return True


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _times(fields: Mapping[str, Any]) -> dict[str, Any]:
    from graphmem.inputs import to_time

    return {name: to_time(fields[name]) for name in ("done_at", "begun_at") if fields.get(name) is not None}


def _scoped(merge: Mapping[str, Any], scope: Scope) -> dict[str, Any]:
    """Set the scope of the rows inside of a merge."""

    def put(row: Mapping[str, Any]) -> dict[str, Any]:
        return {**row, "scope": scope}

    def folded(pair: Mapping[str, Any]) -> dict[str, Any]:
        return {name: put(edge) for name, edge in pair.items() if edge is not None}

    return {
        **merge,
        "kept": put(merge["kept"]),
        "merged": put(merge["merged"]),
        "edges": [put(edge) for edge in merge.get("edges", ())],
        "folded": [folded(pair) for pair in merge.get("folded", ())],
    }


def all_rows(backend: GraphBackend, scope: Scope, *, extras: bool, references: References | None = None) -> RowStream:
    """Yield all rows of a scope with their kinds, read in pages; a row references only rows before it.

    This order requires that no concurrent write is visible: read in a `GraphBackend.snapshot`. References to rows that
    were deleted past graphmem are left out, so that every store takes the rows.

    Parameters
    ----------
    backend, scope
        Store and scope to read.
    extras
        Whether to include the index entries and the job states of upkeep.
    references
        Counts what is left out.
    """
    references = references or References()
    for kind, table in TABLES.items():
        if extras or kind in CONTENT:
            for row in table.read(backend, scope):
                if (kept := references.keep(row)) is not None:
                    yield kind, kept


class _Ids:
    """A set of ids as sorted hashes: eight bytes each."""

    def __init__(self) -> None:
        self._hashes = array("q")
        self._sorted = 0

    def add(self, row_id: str) -> None:
        """Add an id."""
        self._hashes.append(hash(row_id))

    def __contains__(self, row_id: object) -> bool:
        hashes = self._hashes
        if self._sorted < len(hashes):
            import numpy as np  # local import: opening a store needs no numpy

            np.frombuffer(hashes, dtype=np.int64).sort()
            self._sorted = len(hashes)
        wanted = hash(row_id)
        place = bisect_left(hashes, wanted)
        return place < len(hashes) and hashes[place] == wanted


class References:
    """References between the rows of a scope, which are given in the order of `TABLES`.

    Rows that were deleted past graphmem, by SQL or by Cypher, leave references behind that no store takes.

    Attributes
    ----------
    left_out
        Number of references that were left out.
    """

    def __init__(self) -> None:
        self.left_out = 0
        self._episodes, self._entities, self._edges = _Ids(), _Ids(), _Ids()
        self._communities: set[str] = set()
        self._indexed = {"episode": self._episodes, "entity": self._entities, "fact": self._edges}

    def keep(self, row: Row) -> Row | None:
        """Return a row without its references to rows that are gone; None if it makes no sense without one."""
        match row:
            case Episode():
                self._episodes.add(row.id)
            case Entity():
                self._entities.add(row.id)
            case Edge():
                return self._edge(row)
            case Community():
                self._communities.add(row.id)
                if not self._are_there(self._communities, row.parent_id):
                    return row.changed(parent_id=None)
            case RecallTrace():
                return self._trace(row)
            case IndexEntry():
                return row if row.kind == "name" or self._are_there(self._indexed[row.kind], row.key) else None
            case Alias():
                return row if self._are_there(self._entities, row.entity_id) else None
            case Mention():
                is_whole = self._are_there(self._entities, row.entity_id)
                return row if self._are_there(self._episodes, row.episode_id) and is_whole else None
            case Membership():
                is_whole = self._are_there(self._entities, row.entity_id)
                return row if self._are_there(self._communities, row.community_id) and is_whole else None
            case _:
                pass
        return row

    def _are_there(self, rows: Container[str], *row_ids: str | None) -> bool:
        """Return whether all rows are there; count those that aren't."""
        gone = sum([row_id is not None and row_id not in rows for row_id in row_ids])
        self.left_out += gone
        return not gone

    def _edge(self, edge: Edge) -> Edge | None:
        if not self._are_there(self._entities, edge.source_id, edge.target_id):
            return None
        self._edges.add(edge.id)
        if self._are_there(self._episodes, *edge.episode_ids):
            return edge
        return edge.stated_by([i for i in edge.episode_ids if i in self._episodes])

    def _trace(self, trace: RecallTrace) -> RecallTrace:
        seeds = tuple(s for s in trace.seeds if self._are_there(self._entities, s.entity_id))
        facts = tuple(
            f
            for f in trace.facts
            if self._are_there(self._entities, f.entity_id) and self._are_there(self._edges, f.edge_id)
        )
        episodes = tuple(e for e in trace.episodes if self._are_there(self._episodes, e.episode_id))
        if (seeds, facts, episodes) == (trace.seeds, trace.facts, trace.episodes):
            return trace
        return trace.changed(seeds=seeds, facts=facts, episodes=episodes)


# Checksums ----------------------------------------------------------------------------------------


class Checksum:
    """A checksum over rows that depends neither on their order nor on their scope."""

    def __init__(self) -> None:
        self._sum = 0

    def add(self, kind: RowKind, row: str) -> None:
        """Add a row in the format of `to_json`; rows that aren't content are ignored."""
        if kind in CONTENT:
            digest = hashlib.blake2b(f"{kind} {row}".encode(), digest_size=16).digest()
            self._sum = (self._sum + int.from_bytes(digest, "big")) % (1 << 128)

    def text(self) -> str:
        """Return the checksum as 32 hexadecimal digits."""
        return f"{self._sum:032x}"


def checksum(backend: GraphBackend, scope: Scope) -> str:
    """Return the checksum of all rows of a scope except its index and the job states of upkeep.

    Memories with the same rows have the same checksum in any store and under any scope name.
    """

    def work(snapshot: GraphBackend) -> str:
        total = Checksum()
        for kind, row in all_rows(snapshot, scope, extras=False):
            total.add(kind, to_json(kind, row))
        return total.text()

    return backend.snapshot(work)


def is_row_kind(kind: object) -> TypeGuard[RowKind]:
    """Return whether a text names a kind of row."""
    return kind in TABLES


# Look-ups -----------------------------------------------------------------------------------------


def entity_called(backend: GraphBackend, scope: Scope, name_or_id: str) -> Entity:
    """Return the entity with this id, or else with this name.

    Raises
    ------
    NotFound
        If the scope has none.
    InvalidInput
        If several entities have the name; the message contains their types and ids.
    """
    by_id = backend.get_entities([scope], [name_or_id])
    if by_id:
        return by_id[name_or_id]
    found = {entity.id: entity for _, entity in backend.resolve_names(scope, [canonical(name_or_id)])}
    if not found:
        raise NotFound(f"no entity in scope {scope} has the name or id {name_or_id!r}")
    if len(found) > 1:
        which = ", ".join(f"{e.entity_type} {e.id}" for e in found.values())
        raise InvalidInput(
            f"name {name_or_id!r}: {counted(len(found), 'entity', 'entities')} have it; use the id of one: {which}"
        )
    return next(iter(found.values()))


def count_dangling(backend: GraphBackend, scope: Scope) -> int:
    """Return the number of references to deleted rows that few queries find.

    They read the newest 1,000 facts, 1,000 episodes that state these, and 1,000 entries of the index.
    """
    facts = backend.find_edges([scope], EdgeQuery(versions="all"), limit=PAGE, newest_first=True)
    entries = backend.read_index(scope, limit=PAGE)
    keys = {kind: [entry.key for entry in entries if entry.kind == kind] for kind in ("episode", "entity", "fact")}
    sources = list(dict.fromkeys(episode_id for fact in facts for episode_id in fact.episode_ids))[:PAGE]
    episodes = backend.get_episodes([scope], list({*sources, *keys["episode"]}))
    entities = backend.get_entities([scope], keys["entity"])
    edges = backend.get_edges([scope], keys["fact"])
    known: list[tuple[list[str], Container[str]]] = [
        (sources, episodes),
        (keys["episode"], episodes),
        (keys["entity"], entities),
        (keys["fact"], edges),
    ]
    return sum(row_id not in rows for row_ids, rows in known for row_id in row_ids)


def edges_of(backend: GraphBackend, scope: Scope, *entity_ids: str) -> list[Edge]:
    """Return all versions of all facts that one of some entities is part of."""
    return list(backend.all_edges([scope], EdgeQuery(touching=entity_ids, versions="all"))) if entity_ids else []
