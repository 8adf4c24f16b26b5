"""What a search over episodes returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, overload

from graphmem.models import AsOf, Episode, Model

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
