"""How a search is made: what callers may choose beside the question."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from graphmem.models import AsOf, Model
from graphmem.results import Strategy

Fusion = Literal["weighted", "rrf"]


class ExpansionConfig(Model):
    """How the graph takes part in a search.

    Attributes
    ----------
    enabled
        Whether names lead further at all.
    strategy
        How it is walked: ppr (a walk that restarts at the question's names and at the best episodes), bfs, spreading
        or astar.
    hops
        Steps from the names of the question, for the strategies other than ppr: a step leads from a name to an
        episode, back, or to a name alike.
    boost
        Whether the graph's share of the scores is multiplied by the setting `expansion_boost`.
    """

    enabled: bool = True
    strategy: Strategy = "ppr"
    hops: Annotated[int, Field(ge=1, le=6)] = 3
    boost: bool = False


class SearchOptions(Model):
    """How a search is made.

    Attributes
    ----------
    k
        Episodes at most.
    considered
        Episodes in all, where a trace also wants those next to the k, by score alone.
    as_of
        Only episodes that had occurred and were recorded by then.
    expansion
        How the graph takes part.
    expansion_boost
        What the graph's share is multiplied by where `expansion` asks for it.
    fusion
        How the channels are made one: weighted sum of normalised scores, or reciprocal ranks (k = 60).
    diversity
        0 ranks by score alone; towards 1, episodes unlike those before them come first (MMR, λ = 1 - diversity).
    wait
        Seconds that a search may spend on reading what was stored but not indexed yet.
    """

    k: Annotated[int, Field(ge=0)] = 10
    considered: Annotated[int, Field(ge=0)] = 0
    as_of: AsOf | None = None
    expansion: ExpansionConfig = ExpansionConfig()
    expansion_boost: float = 1.2
    fusion: Fusion = "weighted"
    diversity: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    wait: float = 1.0

    @property
    def graph_weight(self) -> float:
        """What the graph's share of the scores is multiplied by."""
        return self.expansion_boost if self.expansion.boost else 1.0
