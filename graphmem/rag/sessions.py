"""Neighbours of an episode: the turns before and after it in the same session."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from graphmem.rag.growing import Growing

REACH = (-2, -1, 1, 2)
"""Distances at which a neighbour counts."""

_FAR = max(REACH)


class Sessions:
    """Who stands next to whom, for n episodes by position; order within a session is the order of their ids."""

    def __init__(self) -> None:
        self._members: dict[Hashable, list[tuple[str, int]]] = {}
        self._at: dict[int, Growing[np.int64]] = {distance: Growing[np.int64](np.int64) for distance in REACH}

    def __len__(self) -> int:
        return len(self._at[1])

    def extend(self, episodes: Sequence[tuple[str, Hashable | None]]) -> None:
        """Add episodes, each with its id and its session (None: it stands alone)."""
        first = len(self)
        for column in self._at.values():
            column.extend(np.full(len(episodes), -1))
        touched: dict[Hashable, int] = {}
        for position, (episode_id, session) in enumerate(episodes, first):
            if session is None:
                continue
            members = self._members.setdefault(session, [])
            touched.setdefault(session, max(0, len(members) - _FAR))
            if members and members[-1][0] > episode_id:  # it came late: another process made it earlier
                touched[session] = 0
            members.append((episode_id, position))
        for session, begin in touched.items():
            if begin == 0:
                self._members[session].sort()
            self._link([position for _, position in self._members[session][begin:]])

    def _link(self, positions: list[int]) -> None:
        run = np.array(positions, dtype=np.int64)
        for distance in range(1, _FAR + 1):
            self._at[distance].rows[run[:-distance]] = run[distance:]
            self._at[-distance].rows[run[distance:]] = run[:-distance]

    def at(self, distance: int) -> NDArray[np.int64]:
        """Return for each episode the position of its neighbour at a distance (negative: before it); -1 for none."""
        return self._at[distance].rows
