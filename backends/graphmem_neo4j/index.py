"""The search index of a scope: entries by position, rows without an entry, model and generation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphmem.errors import InvalidInput
from graphmem.models import IndexCursor, IndexEntry, IndexKind, IndexState, IndexStatus, Scope
from graphmem.protocols import IndexStore
from graphmem_neo4j.connection import Neo4jRole, Transaction

_UNINDEXED = {"episode": "unindexed_episodes", "fact": "unindexed_facts", "entity": "unindexed_entities"}


class Neo4jIndex(Neo4jRole, IndexStore):
    """The index entries of each scope."""

    def index_state(self, scope: Scope) -> IndexState:
        """Return the model and the generation of a scope's index."""
        return _state_of(self._database.read("index_state", [scope], scope=scope.key))

    def index_status(self, cursors: Sequence[IndexCursor]) -> list[IndexStatus]:
        """Return the index status of each scope, read in one round trip."""
        asked = [[cursor.scope.key, cursor.episode, cursor.fact, cursor.position] for cursor in cursors]
        rows = self._database.read("index_status", [cursor.scope for cursor in cursors], cursors=asked)
        found = {key: IndexStatus(IndexState(model, generation), *news) for key, model, generation, *news in rows}
        return [found[cursor.scope.key] for cursor in cursors]

    def read_index(
        self, scope: Scope, *, kind: IndexKind | None = None, after: int = 0, limit: int = 1000
    ) -> list[IndexEntry]:
        """Return a page of entries after a position."""
        name = "read_index" if kind is None else "read_index_of_kind"
        rows = self._database.read(name, [scope], scope=scope.key, kind=kind, after=after, limit=limit)
        return [_entry_of(row) for row in rows]

    def find_index(self, scope: Scope, kind: IndexKind, keys: Sequence[str]) -> list[IndexEntry]:
        """Return the entries with these keys, ordered by key."""
        wanted = list(dict.fromkeys(keys))
        rows = self._database.read("find_index", [scope], scope=scope.key, kind=kind, keys=wanted)
        return [_entry_of(row) for row in rows]

    def find_unindexed(self, scope: Scope, kind: IndexKind, *, after: str = "", limit: int = 1000) -> list[str]:
        """Return ids of rows without a complete entry, in ascending order."""
        if kind == "name":
            return []
        return self._database.read(_UNINDEXED[kind], [scope], scope=scope.key, after=after, limit=limit)

    def reset_index(self, scope: Scope) -> int:
        """Remove all entries of a scope and its model; return the number of removed entries."""

        def work(transaction: Transaction) -> int:
            transaction.lock([scope])
            return transaction.run("reset_index", scope=scope.key)[0]

        return self._database.write(work)


class IndexPlan:
    """The index entries of a write, checked before anything is written."""

    def __init__(self, scope: Scope, entries: Sequence[IndexEntry]) -> None:
        self._scope = scope
        self._entries = list({(entry.kind, entry.key): entry for entry in entries}.values())
        self._model: str | None = None

    def validate(self, transaction: Transaction, written: frozenset[str]) -> None:
        """Raise for entries of rows that aren't in the scope, and for another model than that of the index.

        Parameters
        ----------
        transaction
            The transaction to read in.
        written
            Ids of the rows that the same write stores.
        """
        if not self._entries:
            return
        nodes = [e.key for e in self._entries if e.kind in ("episode", "entity") and e.key not in written]
        edges = [e.key for e in self._entries if e.kind == "fact" and e.key not in written]
        named = transaction.run("named_rows", nodes=nodes, edges=edges)
        there = {row_id for _, row_id, held_by, _ in named if held_by == self._scope.key}
        for entry in self._entries:
            if entry.kind != "name" and entry.key not in there and entry.key not in written:
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
        """Write the rows."""
        if self._entries:
            rows = [[e.kind, e.key, e.model, e.vectors, e.pieces, e.detail, e.complete] for e in self._entries]
            transaction.run("put_index", scope=self._scope.key, rows=rows, model=self._model)


def _state_of(rows: Sequence[Any]) -> IndexState:
    return IndexState(*rows[0]) if rows else IndexState()


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
