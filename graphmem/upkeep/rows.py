"""Everything that a scope holds, row by row, as JSON: what is exported, and what a checksum is made of."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeGuard

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
    Mark,
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

RowKind = Literal[
    "episode", "entity", "alias", "edge", "mention", "community", "membership", "recall", "merge", "index", "mark"
]
"""In the order in which they are exported: a row names only rows that stand before it."""

CONTENT: frozenset[RowKind] = frozenset(
    ("episode", "entity", "alias", "edge", "mention", "community", "membership", "recall", "merge")
)
"""What a memory is; the index can be made anew, and marks tell how far upkeep has come."""

Row = Model | IndexEntry | Mark
Told = Iterator[tuple[RowKind, Row]]

_PAGE = 1000
_ALL = 10**9
_RECENT = 60.0  # seconds: what was stored earlier than that before an export is there for it to read
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
    """Return a row as JSON without its scope: the fields of the model in their order, but those that are None."""
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
    if isinstance(row, Mark):
        times = {
            name: moment.isoformat() for name in ("done_at", "begun_at") if (moment := getattr(row, name)) is not None
        }
        fields = {"job": row.job, "episodes": row.episodes, "cursor": row.cursor, **times}
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return row.model_dump_json(exclude_none=True, exclude=_NO_SCOPE.get(kind))


def from_json(kind: RowKind, fields: Mapping[str, Any], scope: Scope) -> Row:
    """Return the row that `to_json` wrote, in a scope.

    Raises
    ------
    InvalidInput, KeyError, TypeError, ValueError
        If it is none.
    """
    if kind == "index":
        values: dict[str, Any] = {**fields, "vectors": _bytes(fields["vectors"]), "pieces": _bytes(fields["pieces"])}
        return IndexEntry(**values)
    if kind == "mark":
        return Mark(**{**fields, **_times(fields)})
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
    """Give a scope to the rows inside of a merge."""

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


def all_rows(backend: GraphBackend, scope: Scope, *, extras: bool) -> Told:
    """Yield everything that a scope holds, in pages, with the kind of each row.

    What others store meanwhile may be in it or not; a row that is, is preceded by those that it names.

    Parameters
    ----------
    backend, scope
        Whose rows.
    extras
        Whether the entries of the index and the marks of upkeep are among them.
    """
    return _Reading(backend, scope).rows(extras=extras)


class _Reading:
    def __init__(self, backend: GraphBackend, scope: Scope) -> None:
        self._backend = backend
        self._scope = scope
        # ids begin with the milliseconds at which they were made: those below are of rows that were there before
        self._horizon = f"{int((time.time() - _RECENT) * 1000):012x}"
        self._recent: set[str] = set()

    def rows(self, *, extras: bool) -> Told:
        for page in self._episodes():
            yield from self._told("episode", page)
        for page in pages(
            lambda after: self._backend.find_entities([self._scope], EntityQuery(archived=True), after=after)
        ):
            yield from self._entities(page)
        for edges in pages(
            lambda after: self._backend.find_edges([self._scope], EdgeQuery(versions="all"), after=after)
        ):
            yield from self._late([i for e in edges for i in (e.source_id, e.target_id)])
            yield from self._late_episodes([i for e in edges for i in e.episode_ids])
            yield from self._told("edge", edges)
        for page in self._episodes():
            mentions = self._backend.find_mentions([self._scope], episode_ids=[e.id for e in page], limit=_ALL)
            yield from self._late_episodes([e.id for e in page])
            yield from self._late([m.entity_id for m in mentions])
            yield from _of("mention", mentions)
        yield from self._communities()
        yield from self._recalls()
        yield from _of("merge", self._backend.all_merges([self._scope], MergeQuery(undone=True), chunk=_PAGE))
        if extras:
            yield from self._index()
            yield from _of("mark", self._backend.find_marks(self._scope))

    def _episodes(self) -> Iterator[list[Episode]]:
        return pages(lambda after: self._backend.find_episodes([self._scope], EpisodeQuery(), after=after))

    def _told(self, kind: RowKind, rows: Sequence[Episode | Entity | Edge]) -> Told:
        for row in rows:
            self._note(row.id)
            yield kind, row

    def _note(self, row_id: str) -> None:
        if _stamp(row_id) >= self._horizon:
            self._recent.add(row_id)

    def _entities(self, page: Sequence[Entity]) -> Told:
        yield from self._told("entity", page)
        aliases = self._backend.find_aliases([self._scope], [entity.id for entity in page])
        yield from _of("alias", aliases)

    def _unseen(self, ids: Iterable[str]) -> list[str]:
        """Return ids of rows that came while others were read."""
        return [i for i in dict.fromkeys(ids) if _stamp(i) >= self._horizon and i not in self._recent]

    def _late(self, entity_ids: Iterable[str]) -> Told:
        if late := self._unseen(entity_ids):
            yield from self._entities(list(self._backend.get_entities([self._scope], late).values()))

    def _late_episodes(self, episode_ids: Iterable[str]) -> Told:
        if late := self._unseen(episode_ids):
            yield from self._told("episode", list(self._backend.get_episodes([self._scope], late).values()))

    def _late_edges(self, edge_ids: Iterable[str]) -> Told:
        if late := self._unseen(edge_ids):
            edges = list(self._backend.get_edges([self._scope], late).values())
            yield from self._late([i for e in edges for i in (e.source_id, e.target_id)])
            yield from self._late_episodes([i for e in edges for i in e.episode_ids])
            yield from self._told("edge", edges)

    def _communities(self) -> Told:
        every = CommunityQuery(ended=True)
        levels = {community.level for community in self._backend.all_communities([self._scope], every)}
        for level in sorted(levels):  # what a community is part of is of a level before
            for community in self._backend.all_communities([self._scope], CommunityQuery(level=level, ended=True)):
                self._note(community.id)
                yield "community", community
        for member in self._backend.all_memberships([self._scope], MembershipQuery(ended=True)):
            if not self._unseen([member.community_id]):
                yield from self._late([member.entity_id])
                yield "membership", member

    def _recalls(self) -> Told:
        for trace in self._backend.all_recalls([self._scope], RecallQuery(), chunk=_PAGE):
            yield from self._late([*(s.entity_id for s in trace.seeds), *(f.entity_id for f in trace.facts)])
            yield from self._late_edges(f.edge_id for f in trace.facts)
            yield from self._late_episodes(found.episode_id for found in trace.episodes)
            yield "recall", trace

    def _index(self) -> Told:
        for entry in self._backend.all_entries(self._scope, chunk=_PAGE):
            if entry.kind == "name" or not self._unseen([entry.key]):
                yield "index", entry


def _of(kind: RowKind, rows: Iterable[Row]) -> Told:
    return ((kind, row) for row in rows)


def _stamp(row_id: str) -> str:
    """Return the milliseconds in an id, a UUID of version 7, as 12 hexadecimal digits."""
    return row_id[:8] + row_id[9:13]


# Checksums ----------------------------------------------------------------------------------------


class Checksum:
    """A sum over rows that doesn't depend on their order, nor on the scope they are in."""

    def __init__(self) -> None:
        self._sum = 0

    def add(self, kind: RowKind, row: str) -> None:
        """Take a row in, as `to_json` wrote it; what isn't content is passed by."""
        if kind in CONTENT:
            found = hashlib.blake2b(f"{kind} {row}".encode(), digest_size=16).digest()
            self._sum = (self._sum + int.from_bytes(found, "big")) % (1 << 128)

    def text(self) -> str:
        """Return it as 32 hexadecimal digits."""
        return f"{self._sum:032x}"


def checksum(backend: GraphBackend, scope: Scope) -> str:
    """Return the checksum of everything that a scope holds, its index and the marks of upkeep left out.

    Two memories with the same rows have the same one, whatever store they are in and whatever their scopes are called.
    """
    total = Checksum()
    for kind, row in all_rows(backend, scope, extras=False):
        total.add(kind, to_json(kind, row))
    return total.text()


def is_row_kind(kind: object) -> TypeGuard[RowKind]:
    """Tell whether a text names a kind of row."""
    return kind in _MODELS or kind in ("index", "mark")
