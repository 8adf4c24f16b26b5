"""The role of a store that keeps the merge ledger."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol

from graphmem.models import Merge, MergeQuery, Scope


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
