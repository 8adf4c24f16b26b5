"""What recall keeps beside the rows: entries by their position, and which rows have none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphmem.errors import InvalidInput
from graphmem.models import IndexEntry, IndexKind, IndexLook, IndexNews, IndexState, Scope
from graphmem_neo4j.connection import Database, Transaction

_UNINDEXED = {"episode": "unindexed_episodes", "fact": "unindexed_facts", "entity": "unindexed_entities"}


def index_state(database: Database, scope: Scope) -> IndexState:
    """Return the model and the generation of a scope's index."""
    return _state_of(database.read("index_state", [scope], scope=scope.key))


def _state_of(rows: Sequence[Any]) -> IndexState:
    return IndexState(*rows[0]) if rows else IndexState()


def index_news(database: Database, looks: Sequence[IndexLook]) -> list[IndexNews]:
    """Tell how the index of each scope stands, in one round trip."""
    asked = [[look.scope.key, look.episode, look.fact, look.position] for look in looks]
    rows = database.read("index_news", [look.scope for look in looks], looks=asked)
    found = {key: IndexNews(IndexState(*state), waiting, entries) for key, *state, waiting, entries in rows}
    return [found[look.scope.key] for look in looks]


def read_index(database: Database, scope: Scope, kind: IndexKind | None, after: int, limit: int) -> list[IndexEntry]:
    """Return a page of entries behind a position."""
    name = "read_index" if kind is None else "read_index_of_kind"
    return [
        _entry_of(row) for row in database.read(name, [scope], scope=scope.key, kind=kind, after=after, limit=limit)
    ]


def find_index(database: Database, scope: Scope, kind: IndexKind, keys: Sequence[str]) -> list[IndexEntry]:
    """Return the entries with these keys, ordered by key."""
    wanted = list(dict.fromkeys(keys))
    return [_entry_of(row) for row in database.read("find_index", [scope], scope=scope.key, kind=kind, keys=wanted)]


def find_unindexed(database: Database, scope: Scope, kind: IndexKind, after: str, limit: int) -> list[str]:
    """Return ids of rows without a complete entry, in ascending order."""
    if kind == "name":
        return []
    return database.read(_UNINDEXED[kind], [scope], scope=scope.key, after=after, limit=limit)


class IndexPlan:
    """The index entries of a write: judged before anything of it is written."""

    def __init__(self, scope: Scope, entries: Sequence[IndexEntry]) -> None:
        self._scope = scope
        self._entries = list({(entry.kind, entry.key): entry for entry in entries}.values())
        self._model: str | None = None

    def judge(self, transaction: Transaction, brought: frozenset[str]) -> None:
        """Refuse entries of rows that aren't in the scope, and of another model than the index has.

        Parameters
        ----------
        transaction
            Where to look.
        brought
            Ids of rows that the same write brings.
        """
        if not self._entries:
            return
        nodes = [e.key for e in self._entries if e.kind in ("episode", "entity") and e.key not in brought]
        edges = [e.key for e in self._entries if e.kind == "fact" and e.key not in brought]
        named = transaction.run("named_rows", nodes=nodes, edges=edges)
        there = {row_id for _, row_id, held_by, _ in named if held_by == self._scope.key}
        for entry in self._entries:
            if entry.kind != "name" and entry.key not in there and entry.key not in brought:
                raise InvalidInput(f"{entry.kind} {entry.key} is not in scope {self._scope}")
        built = _state_of(transaction.run("index_state", scope=self._scope.key)).model
        for entry in self._entries:
            if not entry.complete or entry.model == built:
                continue
            if built is not None:
                raise InvalidInput(f"index of scope {self._scope}: built with {built!r}, not with {entry.model!r}")
            built = entry.model
        self._model = built

    def run(self, transaction: Transaction) -> None:
        """Write."""
        if self._entries:
            rows = [[e.kind, e.key, e.model, e.vectors, e.pieces, e.detail, e.complete] for e in self._entries]
            transaction.run("put_index", scope=self._scope.key, rows=rows, model=self._model)


def reset_index(database: Database, scope: Scope) -> int:
    """Delete all entries of a scope and its model."""

    def work(transaction: Transaction) -> int:
        transaction.lock([scope])
        return transaction.run("reset_index", scope=scope.key)[0]

    return database.write(work)


def _entry_of(row: Sequence[Any]) -> IndexEntry:
    kind, key, model, vectors, pieces, detail, complete, position = row
    return IndexEntry(
        kind=kind,
        key=key,
        model=model,
        vectors=vectors,
        pieces=pieces,
        detail=detail,
        complete=complete,
        position=position,
    )
