"""Rows of a scope: look-ups that merge, unmerge and erasure share, and JSON for exports and checksums."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeGuard

from graphmem.errors import InvalidInput, NotFound
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
"""Kinds of rows in export order: a row references only rows before it."""

CONTENT: frozenset[RowKind] = frozenset(
    ("episode", "entity", "alias", "edge", "mention", "community", "membership", "recall", "merge")
)
"""Kinds that are part of a checksum. The index can be rebuilt, and job states are the progress of upkeep."""

Row = Model | IndexEntry | JobState
RowStream = Iterator[tuple[RowKind, Row]]

_PAGE = 1000
_MODELS: dict[RowKind, type[Model]] = {
    "episode": Episode,
    "entity": Entity,
    "alias": Alias,
    "edge": Edge,
    "mention": Mention,
    "community": Community,
    "membership": Membership,
    "recall": RecallTrace,
    "merge": Merge,
}
_WITH_SCOPE: tuple[RowKind, ...] = ("episode", "entity", "edge", "community", "recall", "merge")
_SCOPE: dict[str, Any] = {"scope": True}
_NO_SCOPE: dict[RowKind, Any] = {
    **{kind: {"scope"} for kind in _WITH_SCOPE},
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
    elif isinstance(row, Edge) and not row.ends:
        excluded = {"scope", "ends"}
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
    if kind in _WITH_SCOPE:
        return _MODELS[kind](scope=scope, **fields)
    return _MODELS[kind](**fields)


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


# Rows of a store ----------------------------------------------------------------------------------


def all_rows(backend: GraphBackend, scope: Scope, *, extras: bool) -> RowStream:
    """Yield all rows of a scope with their kinds, read in pages; a row references only rows before it.

    This order requires that no concurrent write is visible: read in a `GraphBackend.snapshot`.

    Parameters
    ----------
    backend, scope
        Store and scope to read.
    extras
        Whether to include the index entries and the job states of upkeep.
    """
    scopes = [scope]
    yield from _of("episode", backend.all_episodes(scopes, EpisodeQuery(), chunk=_PAGE))
    for page in pages(
        lambda after: backend.find_entities(scopes, EntityQuery(archived=True), after=after, limit=_PAGE)
    ):
        yield from _of("entity", page)
        yield from _of("alias", backend.find_aliases(scopes, [entity.id for entity in page]))
    yield from _of("edge", backend.all_edges(scopes, EdgeQuery(versions="all"), chunk=_PAGE))
    for page in pages(lambda after: backend.find_episodes(scopes, EpisodeQuery(), after=after, limit=_PAGE)):
        yield from _of("mention", backend.all_mentions(scopes, episode_ids=[e.id for e in page]))
    for level in sorted({c.level for c in backend.all_communities(scopes, CommunityQuery(ended=True))}):
        # the parent of a community is on a level before
        yield from _of("community", backend.all_communities(scopes, CommunityQuery(level=level, ended=True)))
    yield from _of("membership", backend.all_memberships(scopes, MembershipQuery(ended=True)))
    yield from _of("recall", backend.all_recalls(scopes, RecallQuery(), chunk=_PAGE))
    yield from _of("merge", backend.all_merges(scopes, MergeQuery(undone=True), chunk=_PAGE))
    if extras:
        yield from _of("index", backend.all_entries(scope, chunk=_PAGE))
        yield from _of("mark", backend.find_job_states(scope))


def _of(kind: RowKind, rows: Iterable[Row]) -> RowStream:
    return ((kind, row) for row in rows)


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
    return kind in _MODELS or kind in ("index", "mark")


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


def edges_of(backend: GraphBackend, scope: Scope, *entity_ids: str) -> list[Edge]:
    """Return all versions of all facts that one of some entities is part of."""
    return list(backend.all_edges([scope], EdgeQuery(touching=entity_ids, versions="all"))) if entity_ids else []
