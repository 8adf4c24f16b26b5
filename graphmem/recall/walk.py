"""What every strategy says of a subgraph: by which end and way each fact was reached, and how strongly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Reached:
    """How each node of a subgraph of n nodes was reached.

    Attributes
    ----------
    seed
        int array (n,): position of the seed that it was reached from, -1 for none.
    parent
        int array (n,): position of the node before it on the way from that seed, -1 for seeds.
    """

    seed: Positions
    parent: Positions

    def path(self, node: int) -> list[int]:
        """Return the positions from the seed to a node, both included."""
        way = [node]
        while self.parent[way[-1]] >= 0:
            way.append(int(self.parent[way[-1]]))
        return way[::-1]


@dataclass(frozen=True, slots=True)
class Walk:
    """What a strategy found in a subgraph of m edges.

    Attributes
    ----------
    reached
        The ways to the nodes.
    near
        int array (m,): the end by which each fact was reached, -1 where it was not.
    parts
        Factors of the score that the strategy gives, by name of `ScoreParts`; float arrays (m,).
    timed_out
        Whether the time was up before it was done.
    """

    reached: Reached
    near: Positions
    parts: dict[str, Floats]
    timed_out: bool = False
