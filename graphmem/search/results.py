"""Options and results of a search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal, overload

from pydantic import Field

from graphmem.models import AsOf, Episode, EpisodeFilter, Model
from graphmem.recall.evidence import Evidence
from graphmem.results import Strategy
from graphmem.trust import Trust

Channel = Literal["lexical", "semantic", "fact", "graph", "prior", "rerank"]


class Reason(Model):
    """A component of a result's score; the components add up to the score.

    Attributes
    ----------
    channel
        lexical: words. semantic: vectors. fact: facts that the episode states. graph: names that lead to it. prior:
        speaker, date, and whether it is a statement. rerank: the cross-encoder.
    score
        The component of the score.
    detail
        Source within the channel: "best sentence", "late interaction", "speaker", …
    fact_id
        The best fact, for channel fact.
    entity, path, hops
        For channel graph: the name that leads to the episode, the path to it from a name in the question, and its
        distance: 0 for a name in the question or a synonym.
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


_GROUNDS = frozenset({"lexical", "fact", "graph"})

SIMILAR = 0.25
"""Cosine from which a text is near to a question in meaning; most unrelated ones are below."""

_NEAREST = 5  # best episodes that are evidence though they share nothing with the question, if one is near in meaning


def is_grounded(of_results: Iterable[Iterable[Reason]]) -> bool:
    """Return whether any result shares a word, a fact or a name with the question; a nearest vector always exists."""
    return any(reason.channel in _GROUNDS and reason.score > 0 for reasons in of_results for reason in reasons)


def evidence_of(
    ranked: Iterable[tuple[str, Sequence[Reason], bool]],
    degraded: Sequence[str] = (),
    *,
    confidence: float = 0.0,
    similarity: float = 0.0,
    asker: str | None = None,
) -> Evidence:
    """Return the evidence of ranked episodes, given as (id, reasons, whether it is a list of ready-made facts).

    An episode counts if it shares a word, a fact or a name with the question, or is by a speaker whom it is about; the
    best ones also if one is near to the question in meaning.
    """
    best = _NEAREST if similarity >= SIMILAR else 0
    kept = {
        episode_id: is_list
        for place, (episode_id, reasons, is_list) in enumerate(ranked)
        if place < best or _is_evidence(reasons)
    }
    lists = {episode_id for episode_id, is_list in kept.items() if is_list}
    return Evidence(list(kept), lists, tuple(degraded), confidence, asker=asker)


def _is_evidence(reasons: Sequence[Reason]) -> bool:
    said = any(reason.detail in ("speaker", "side") and reason.score > 0 for reason in reasons)
    return said or is_grounded([reasons])


class Found(Model):
    """An episode found by a search, with the reasons for its score.

    Attributes
    ----------
    confidence
        Calibrated probability that the episode answers the question, in [0, 1].
    trust
        Trust of its source; ``untrusted`` if it was flagged as a prompt injection.
    """

    episode: Episode
    score: float
    reasons: tuple[Reason, ...]
    confidence: float = 0.0
    trust: Trust = "trusted"


class SearchResults(Model, Sequence[Found]):
    """Episodes for a question, best first: a sequence over `found`.

    Attributes
    ----------
    degraded
        Messages about components that were unavailable or not ready; empty if none were.
    seeds
        Names in the question that the graph walk started from.
    trace_id
        Id of the trace for `why`, if the search was traced.
    confidence
        Calibrated probability that one of the ten best episodes answers the question, in [0, 1].
    similarity
        Cosine of the question and the sentence or fact nearest to it in meaning; 0 without an embedding model.
    unknown_asker
        Whether the question is in the first person and it isn't known who asks: nobody was named and several people
        speak, or the one who was named neither speaks nor is known. Facts then don't answer it.
    asker
        The only person who speaks, where the question is about who asks it and nobody was named.
    """

    query: str
    found: tuple[Found, ...]
    as_of: AsOf | None = None
    degraded: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    trace_id: str | None = None
    confidence: float = 0.0
    similarity: float = 0.0
    unknown_asker: bool = False
    asker: str | None = None

    @property
    def evidence(self) -> Evidence:
        """The episodes that share a word, a fact, a name or a speaker with the question, for a recall."""
        if self.unknown_asker:
            return Evidence(unknown_asker=True)
        ranked = ((one.episode.id, one.reasons, one.episode.source == "triple") for one in self.found)
        return evidence_of(ranked, confidence=self.confidence, similarity=self.similarity, asker=self.asker)

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
    """Configuration of the graph channel.

    Attributes
    ----------
    enabled
        Whether the graph channel is used.
    strategy
        Strategy of the walk: ppr (personalized PageRank that restarts at the names in the question and at the best
        episodes), bfs, spreading or astar.
    hops
        Maximum distance from the names in the question, for the strategies other than ppr: a hop leads from a name to
        an episode, back, or to a synonym.
    boost
        Whether the graph's part of the score is multiplied by the setting `expansion_boost`.
    """

    enabled: bool = True
    strategy: Strategy = "ppr"
    hops: Annotated[int, Field(ge=1, le=6)] = 3
    boost: bool = False


class SearchOptions(Model):
    """Options of a search.

    Attributes
    ----------
    k
        Maximum number of episodes.
    considered
        Total number of episodes for a trace: the k results, then the next best by score.
    as_of
        Only episodes that had occurred and were recorded by then.
    expansion
        Configuration of the graph channel.
    expansion_boost
        Factor of the graph's part of the score if `expansion.boost` is True.
    fusion
        Fusion of the channels: weighted sum of normalized scores, or reciprocal ranks (k = 60).
    diversity
        0 ranks by score alone; higher values prefer episodes unlike those ranked before (MMR, λ = 1 - diversity).
    filters
        Only episodes that it matches are ranked.
    min_trust
        Only episodes of sources with at least this trust.
    min_confidence
        Return nothing if the confidence of the whole result is below this.
    asked_by
        Who asks, if that was given.
    wait
        Seconds that a search may spend on indexing rows that were stored but not indexed yet.
    """

    k: Annotated[int, Field(ge=0)] = 10
    considered: Annotated[int, Field(ge=0)] = 0
    as_of: AsOf | None = None
    expansion: ExpansionConfig = ExpansionConfig()
    expansion_boost: float = 1.2
    fusion: Fusion = "weighted"
    diversity: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    filters: EpisodeFilter | None = None
    min_trust: Trust = "untrusted"
    min_confidence: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    asked_by: str | None = None
    wait: float = 1.0

    @property
    def graph_weight(self) -> float:
        """The factor of the graph's part of the score."""
        return self.expansion_boost if self.expansion.boost else 1.0
