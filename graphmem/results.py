"""What reads and loads return to callers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, overload

from pydantic import Field

from graphmem.models import AsOf, EdgeType, Entity, Model, Properties, UTCDateTime

Strategy = Literal["bfs", "spreading", "ppr", "astar"]
"""How a recall goes from its seeds to facts (spec: strategies)."""

StrategyChoice = Literal[Strategy, "auto"]
"""A strategy, or "auto": the one that serves the kind of question (graphmem.recall.routing)."""


class Seed(Model):
    """An entity from which a recall started, and why.

    `text` and `structural` are in [0, 1]; ``score = text × (1 − w) + structural × w`` (spec: seeds).
    """

    entity_id: str
    name: str
    entity_type: str
    score: float
    text: float
    structural: float


class ScoreParts(Model):
    """The factors of a fact's score; their product is the score.

    Attributes
    ----------
    seed
        Score of the seed, in [0, 1]; 1 where `reach` contains it (spreading).
    proximity
        1 / (1 + hop); 1 where `reach` contains it (spreading).
    reach
        How strongly the strategy reached the fact: the activation of its end (spreading), the root of the rank
        of its ends over the highest (ppr), 1 / (1 + cost of the path) (astar), 1 (bfs).
    confidence
        Effective confidence: ``min(1, confidence × (1 + 0.2 × ln(1 + retrieval_count)))`` (A-MEM).
    edge_type
        Flow weight of the edge type.
    recency
        ``min(1 + 1 / (1 + age_days × rate), 2)``, or 1 when the rate is 0.
    relevance
        ``1 + weight × share``: share of the question's weighted words that the fact has, in [0, 1].
    """

    seed: float = 1.0
    proximity: float = 1.0
    reach: float = 1.0
    confidence: float
    edge_type: float
    recency: float = 1.0
    relevance: float = 1.0


class Fact(Model):
    """One version of a fact, with the names of its ends; from a recall also with score, path and reason."""

    id: str
    source: str
    relation: str
    target: str
    fact: str
    edge_type: EdgeType
    confidence: float
    valid_from: UTCDateTime
    valid_to: UTCDateTime | None = None
    recorded_at: UTCDateTime
    expired_at: UTCDateTime | None = None
    superseded_by: str | None = None
    source_id: str
    target_id: str
    episode_ids: tuple[str, ...] = ()
    retrieval_count: float = 0.0
    properties: Properties = {}
    score: float | None = None
    hop: int | None = None
    seed: str | None = Field(default=None, description="name of the seed that it was reached from")
    path: tuple[str, ...] = Field(default=(), description="names from the seed to the nearer end, the seed first")
    parts: ScoreParts | None = None

    def __str__(self) -> str:
        since = f"since {self.valid_from:%Y-%m-%d}"
        until = f", until {self.valid_to:%Y-%m-%d}" if self.valid_to else ""
        return f"{self.fact} ({since}{until}) [confidence: {self.confidence:.2f}]"


class RecallResult(Model, Sequence[Fact]):
    """Facts for a question, best first, with the seeds that led to them: a sequence of its `facts`.

    `strategy` is the one that was used; `timed_out` says that its time was up, so that more could have been found.
    """

    query: str
    facts: tuple[Fact, ...]
    seeds: tuple[Seed, ...]
    as_of: AsOf | None = None
    strategy: Strategy = "bfs"
    timed_out: bool = False
    trace_id: str | None = Field(default=None, description="id of its trace, if one was asked for")

    def __iter__(self) -> Iterator[Fact]:  # type: ignore[override]
        return iter(self.facts)

    def __len__(self) -> int:
        return len(self.facts)

    @overload
    def __getitem__(self, index: int) -> Fact: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Fact, ...]: ...
    def __getitem__(self, index: int | slice) -> Fact | tuple[Fact, ...]:
        return self.facts[index]


class TraceSeed(Model):
    """An entity from which a traced recall started, with its score."""

    entity_id: str
    name: str
    entity_type: str
    score: float


class TraceFact(Model):
    """A fact that a traced recall came upon.

    Attributes
    ----------
    fact
        As it is in the store now; it may have ended since.
    found_at
        Name of the end at which it was found: the one farther from the seed.
    score, hop
        As in the result.
    channel
        The part of the recall that found it.
    rank
        Its place in the result, from 1; None where it was considered but not returned.
    """

    fact: Fact
    found_at: str
    score: float
    hop: int
    channel: str
    rank: int | None = None


class TraceEpisode(Model):
    """An episode that a traced recall came upon; fields as in `TraceFact`."""

    episode_id: str
    score: float
    channel: str
    rank: int | None = None


class Trace(Model):
    """Why a recall returned what it did; returned facts stand first, by rank, then the others, the best first."""

    id: str
    query: str
    strategy: str
    asked_at: UTCDateTime
    as_of: AsOf | None = None
    seeds: tuple[TraceSeed, ...] = ()
    facts: tuple[TraceFact, ...] = ()
    episodes: tuple[TraceEpisode, ...] = ()


class EntityCounts(Model):
    """An entity, and how often it is spoken of: episodes that mention it, and facts that it takes part in."""

    entity: Entity
    mentions: int
    facts: int


class Diff(Model):
    """What happened between two times.

    `began`: facts that became true; `ended`: facts that stopped being true; `learned`: facts that were recorded.
    `truncated`: at least one list was cut at the limit.
    """

    began: tuple[Fact, ...]
    ended: tuple[Fact, ...]
    learned: tuple[Fact, ...]
    truncated: bool = False


class QueueError(Model):
    """Why an episode is not extracted yet.

    Attributes
    ----------
    attempts
        Tries that the episode used up; a model that is unavailable or misconfigured uses up none.
    retry_at
        When it is tried again; None: not by itself, it is a dead letter.
    failed_at
        When it failed last.
    """

    episode_id: str
    error: str
    attempts: int
    retry_at: UTCDateTime | None = None
    failed_at: UTCDateTime | None = None


class QueueState(Model):
    """Whether extraction goes on.

    Attributes
    ----------
    state
        ``running``; ``waiting``: the model is unavailable; ``paused``: somebody has to repair the configuration.
    reason
        The error.
    since
        When that began.
    next_try
        When the next episode is tried; until then none is.
    """

    state: Literal["running", "waiting", "paused"] = "running"
    reason: str = ""
    since: UTCDateTime | None = None
    next_try: UTCDateTime | None = None

    def __str__(self) -> str:
        if self.state == "running":
            return self.state
        since = f" since {self.since:%Y-%m-%d %H:%M} UTC" if self.since else ""
        then = f"; next try {self.next_try:%Y-%m-%d %H:%M} UTC" if self.next_try else ""
        return f"{self.state}{since}: {self.reason}{then}"


class UpkeepState(Model):
    """How far a job of upkeep has come in a scope.

    Attributes
    ----------
    done_at
        When it last ran to its end, None before that.
    episodes
        How many processed episodes the scope had then.
    begun_at
        When a run began that has not ended: it is going on, or was interrupted and goes on when it is due again.
    """

    job: str
    done_at: UTCDateTime | None = None
    episodes: int = 0
    begun_at: UTCDateTime | None = None


class Stats(Model):
    """How much a scope holds, and how its queue is.

    Attributes
    ----------
    pending_episodes, failed_episodes
        Waiting for extraction; out of tries.
    community_members, waiting_entities
        Entities in a community of level 0; entities that are in none: they know nobody in one, or wait for a refresh.
    deleted_facts
        Superseded facts that evictions have deleted so far: history that is no longer there.
    queue
        Whether extraction goes on, as far as this process or the errors of the scope tell.
    errors
        Of episodes that failed or wait for another try, at most 10; `GraphMemory.dead_letters` lists all that failed.
    upkeep
        How far each job of upkeep has come.
    background
        Errors of background work of this process that still goes on failing.
    """

    scope: str
    entities: int
    archived_entities: int
    aliases: int
    edges: int
    active_edges: int
    episodes: int
    pending_episodes: int
    failed_episodes: int
    mentions: int
    communities: int
    ended_communities: int
    community_members: int
    waiting_entities: int
    deleted_facts: int = 0
    recalls: int
    edges_by_type: dict[str, int]
    entities_by_type: dict[str, int]
    queue: QueueState = QueueState()
    errors: tuple[QueueError, ...] = ()
    upkeep: tuple[UpkeepState, ...] = ()
    background: tuple[str, ...] = ()


class Check(Model):
    """A finding of `doctor`."""

    name: str
    ok: bool
    detail: str


MAX_REJECTED = 1000
"""Items that a report lists; it counts all."""


class Rejected(Model):
    """An item that could not be taken, and why."""

    item: str
    reason: str


class LoadReport(Model):
    """What a load did.

    Attributes
    ----------
    received
        Items given.
    stored
        Episodes that are new.
    known
        Items that were there already, by `external_id`.
    skipped
        Episodes stored but not extracted, because of the gate.
    extracted
        Episodes extracted by the end of the load.
    failed
        Episodes whose extraction failed for good, or waits for its next try.
    entities, edges
        New rows; `supported`: facts stated again; `ended`: facts closed.
    rejected
        Items refused, at most 1,000 of them; `rejected_count` counts all.
    dropped
        What extractors and limits left out, by reason.
    seconds
        Wall time, that of indexing included.
    """

    received: int = 0
    stored: int = 0
    known: int = 0
    skipped: int = 0
    extracted: int = 0
    failed: int = 0
    entities: int = 0
    edges: int = 0
    supported: int = 0
    ended: int = 0
    rejected: tuple[Rejected, ...] = ()
    rejected_count: int = 0
    dropped: dict[str, int] = {}
    seconds: float = 0.0

    @classmethod
    def combined(cls, reports: Sequence[LoadReport]) -> LoadReport:
        """Return the report of several loads, one after the other."""
        counts = {
            name: sum(getattr(report, name) for report in reports)
            for name in cls.model_fields
            if name not in ("rejected", "dropped")
        }
        rejected = tuple(each for report in reports for each in report.rejected)
        dropped = Counter[str]()
        for report in reports:
            dropped.update(report.dropped)
        return cls(**counts, rejected=rejected[:MAX_REJECTED], dropped=dict(dropped))
