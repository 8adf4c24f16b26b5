"""The role of a store that holds what recall needs beside the rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol

from graphmem.models import IndexEntry, IndexKind, IndexState, Scope


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
