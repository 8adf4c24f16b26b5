"""What a search takes beside the question, and what it returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, overload

from pydantic import Field

from graphmem.models import AsOf, Episode, Model
from graphmem.results import Strategy

Channel = Literal["lexical", "semantic", "fact", "graph", "prior", "rerank"]


class Reason(Model):
    """A part of a result's score; the parts add up to it.

    Attributes
    ----------
    channel
        lexical: words. semantic: vectors. fact: facts that the episode states. graph: names that lead to it. prior:
        who spoke, when, and whether it is a statement. rerank: a cross-encoder that read it with the question.
    score
        Its share of the score.
    detail
        Which one of the channel: "sentence", "late interaction", "speaker", …
    fact_id
        The best fact, for channel fact.
    entity, path, hops
        For channel graph: the name it hangs on, the way there from a name of the question, and how many names lie
        between: 0 for a name of the question itself.
    """

    channel: Channel
    score: float
    detail: str
    fact_id: str | None = None
    entity: str | None = None
    path: tuple[str, ...] = ()
    hops: int | None = None

    def __str__(self) -> str:
        via = f" via {' → '.join(self.path)}" if self.path else ""
        return f"{self.channel} ({self.detail}){via} {self.score:.3f}"


class Found(Model):
    """An episode that a search found, with the reasons why."""

    episode: Episode
    score: float
    reasons: tuple[Reason, ...]


class SearchResults(Model, Sequence[Found]):
    """Episodes for a question, best first: a sequence of what was `found`.

    Attributes
    ----------
    degraded
        What was away or not ready, in words; empty when nothing was.
    seeds
        Names of the question that the graph was walked from.
    trace_id
        By which `why` tells of a traced search.
    """

    query: str
    found: tuple[Found, ...]
    as_of: AsOf | None = None
    degraded: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    trace_id: str | None = None

    def __iter__(self) -> Iterator[Found]:  # type: ignore[override]
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    @overload
    def __getitem__(self, index: int) -> Found: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Found, ...]: ...
    def __getitem__(self, index: int | slice) -> Found | tuple[Found, ...]:
        return self.found[index]


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
        How the channels are made one: weighted sum of normalized scores, or reciprocal ranks (k = 60).
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
