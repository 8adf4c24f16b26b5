"""Communities of a memory: detection and search."""

from __future__ import annotations

from graphmem.communities.results import FoundCommunity, Refreshed
from graphmem.errors import InvalidInput
from graphmem.inputs import to_as_of, to_limit
from graphmem.memory.part import Part, Scopes, Time
from graphmem.models import AsOf, CommunityAlgorithm


class Exploring(Part):
    """What shows which groups of entities belong together."""

    def refresh_communities(self, algorithm: CommunityAlgorithm | None = None) -> Refreshed:
        """Detect communities again, starting from the present ones; those that persist keep their ids and names.

        Everything that changed is written in one transaction; an unchanged graph writes nothing. Communities that are
        no more are ended, not removed: `communities` shows them with `as_of`.

        Parameters
        ----------
        algorithm
            ``label_propagation`` (one level) or ``leiden`` (levels); by default as the setting `community_algorithm`
            says.

        Raises
        ------
        InvalidInput
            If there is no such algorithm.
        MissingExtra
            If it needs a package that isn't installed.
        """
        return self._engine.communities.refresh(self.scope, algorithm)

    def communities(
        self,
        query: str | None = None,
        *,
        level: int | None = 0,
        as_of: AsOf | Time | None = None,
        ended: bool = False,
        limit: int = 100,
        scopes: Scopes | None = None,
    ) -> list[FoundCommunity]:
        """Return communities with their members: those that fit a question, best first; without one, the largest.

        Parameters
        ----------
        query
            A question in plain words: it is compared with names, summaries and members, and, where there is an
            embedding model, with the mean of the members' vectors.
        level
            0 is the partition; deeper levels are there after ``leiden``; None means all.
        as_of
            The communities as they had been found by then.
        ended
            Whether those that are over are shown, too.
        limit
            Communities at most.
        scopes
            As in `recall`.
        """
        if level is not None and level < 0:
            raise InvalidInput(f"level: expected 0 or more, got {level}")
        query = None if query is None else self._engine.redacted(query)
        return self._engine.communities.find(
            self._scopes(scopes), query, level=level, as_of=to_as_of(as_of), ended=ended, limit=to_limit(limit)
        )
