"""The role of a store that is kept in order: what upkeep needs of it beside reads and writes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from graphmem.models import Mark, Scope


class UpkeepStore(Protocol):
    """Marks of upkeep, what it looks for, and complete removal.

    A mark is written as `Changes.marks`: inserted, or replaced by job.
    """

    @abstractmethod
    def find_marks(self, scope: Scope) -> list[Mark]:
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
