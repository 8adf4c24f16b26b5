"""Result models of reads, loads and checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal, overload

from pydantic import Field

from graphmem.models import AsOf, Certainty, EdgeType, Entity, FactKind, Model, Properties, UTCDateTime
from graphmem.text.periods import first_and_last, in_words, known_beginning
from graphmem.trust import Trust

Strategy = Literal["bfs", "spreading", "ppr", "astar"]
"""Traversal strategy of a recall from its seeds to facts."""

StrategyChoice = Literal[Strategy, "auto"]
"""A strategy, or "auto" to choose one by the kind of question (graphmem.recall.routing)."""


class Seed(Model):
    """An entity from which a recall started, with its scores.

    `text` and `structural` are in [0, 1]; ``score = text × (1 − w) + structural × w``.
    """

    entity_id: str
    name: str
    entity_type: str
    score: float
    text: float
    structural: float


class ScoreParts(Model):
    """The parts of a fact's score: ``evidence`` plus the product of the others.

    Attributes
    ----------
    seed
        Score of the seed, in [0, 1]; 1 if `reach` contains it (spreading).
    proximity
        1 / (1 + hop); 1 if `reach` contains it (spreading).
    reach
        Strength with which the strategy reached the fact: activation of its end (spreading), square root of the rank
        of its ends relative to the highest (ppr), 1 / (1 + cost of the path) (astar), 1 (bfs).
    confidence
        Effective confidence: ``min(1, confidence × (1 + 0.2 × ln(1 + retrieval_count)))`` (A-MEM).
    edge_type
        Flow weight of the edge type.
    recency
        ``min(1 + 1 / (1 + age_days × rate), 2)``, or 1 when the rate is 0.
    relevance
        ``1 + weight × share``: share of the question's weighted words that the fact contains, in [0, 1].
    relation
        ``1 + 2 × share``: share of the question's weighted words that name its relation; 1 in relations that the
        ontology doesn't define.
    past
        1 for a fact that holds at the time that the question is about, 0.5 for another.
    evidence
        What the best episode that states the fact adds, 0 if the search for the question finds none of its episodes.
    inferred
        1 for a fact that was stated, 0.5 for an inferred one.

    Of a fact that was found by its episodes alone, `seed` is 0.
    """

    seed: float = 1.0
    proximity: float = 1.0
    reach: float = 1.0
    confidence: float
    edge_type: float
    recency: float = 1.0
    relevance: float = 1.0
    relation: float = 1.0
    past: float = 1.0
    evidence: float = 0.0
    inferred: float = 1.0


class Premise(Model):
    """A fact that another one was inferred from."""

    id: str
    fact: str


class Fact(Model):
    """One version of a fact, with the names of its entities; from a recall also with score, path and score parts."""

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
    certainty: Certainty = "stated"
    kind: FactKind = "state"
    valid_from_assumed: bool = Field(default=False, description="whether `valid_from` is only when it was told")
    told_at: UTCDateTime | None = None
    end_reason: str | None = Field(default=None, description="over, replaced, corrected, or words given by a caller")
    trust: Trust = Field(
        default="trusted", description="of the best source; of an inferred fact the lowest of its premises"
    )
    inferred_by: str | None = Field(default=None, description="rule that inferred it, `model` for a language model")
    premises: tuple[Premise, ...] = Field(default=(), description="the facts that it was inferred from")
    score: float | None = None
    hop: int | None = None
    seed: str | None = Field(default=None, description="name of the seed that it was reached from")
    path: tuple[str, ...] = Field(default=(), description="names from the seed to the nearer end, the seed first")
    parts: ScoreParts | None = None

    def __str__(self) -> str:
        sure = "" if self.certainty == "stated" else f", {self.certainty}"
        return f"{self.fact} ({self.when}{sure}) [confidence: {self.confidence:.2f}]{self.grounds}"

    @property
    def when(self) -> str:
        """The time in which it held in words: "since 2019-03-01, until 2021-05-31", "until 2019", "never true".

        "replaced" is a fact that another one replaced from its beginning: a plan that came true by its day.
        """
        if self.valid_from == self.valid_to:
            return "never true" if self.superseded_by is None else "replaced"
        return in_words(*self.dates())

    def dates(self, *, by_month: bool = False) -> tuple[str, str]:
        """Return the first and the last day, month or year on which it held, "" if unknown (`first_and_last`)."""
        assumed = self.valid_from_assumed
        begin = known_beginning(self.valid_from, self.valid_to, self.told_at, assumed=assumed)
        is_event = self.kind == "event"
        return first_and_last(begin, self.valid_to, is_event=is_event, by_month=by_month, assumed=assumed)

    @property
    def grounds(self) -> str:
        """Rule and premises of an inferred fact in words, "" for a stated one."""
        if self.inferred_by is None:
            return ""
        return f" [inferred by {self.inferred_by} from: {'; '.join(premise.fact for premise in self.premises)}]"


class RecallResult(Model, Sequence[Fact]):
    """Facts for a question, best first, with the seeds that led to them; a sequence of its `facts`.

    `strategy` is the one that was used; `timed_out` is True if its time limit ended it early. `degraded` has messages
    about parts of the search for its evidence that were unavailable; empty if none were. `confidence` is that of this
    search: the probability that one of the ten best episodes answers the question, 0 without a search.
    """

    query: str
    facts: tuple[Fact, ...]
    seeds: tuple[Seed, ...]
    as_of: AsOf | None = None
    strategy: Strategy = "bfs"
    timed_out: bool = False
    trace_id: str | None = Field(default=None, description="id of its trace, if one was asked for")
    degraded: tuple[str, ...] = ()
    confidence: float = 0.0

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
    """A fact that a traced recall considered.

    Attributes
    ----------
    fact
        The fact as it is in the store now; it may have ended since.
    found_at
        Name of the entity at which it was found: the one farther from the seed.
    score, hop
        Score and hop as in the result.
    channel
        The part of the recall that found it.
    rank
        Its position in the result, from 1; None if it was considered but not returned.
    """

    fact: Fact
    found_at: str
    score: float
    hop: int
    channel: str
    rank: int | None = None


class TraceEpisode(Model):
    """An episode that a traced recall considered; fields as in `TraceFact`."""

    episode_id: str
    score: float
    channel: str
    rank: int | None = None


class Trace(Model):
    """Trace of a recall that explains its result: returned facts by rank, then the other facts, best first."""

    id: str
    query: str
    strategy: str
    asked_at: UTCDateTime
    as_of: AsOf | None = None
    seeds: tuple[TraceSeed, ...] = ()
    facts: tuple[TraceFact, ...] = ()
    episodes: tuple[TraceEpisode, ...] = ()


class EntityCounts(Model):
    """An entity with the number of episodes that mention it and of facts that it is part of."""

    entity: Entity
    mentions: int
    facts: int


class Diff(Model):
    """Changes between two times.

    `began`: facts that became true; `ended`: facts that stopped being true; `learned`: facts that were recorded.
    `truncated`: at least one list reached the limit.
    """

    began: tuple[Fact, ...]
    ended: tuple[Fact, ...]
    learned: tuple[Fact, ...]
    truncated: bool = False


class QueueError(Model):
    """Extraction error of an episode.

    Attributes
    ----------
    attempts
        Number of attempts counted; failures of an unavailable or misconfigured model don't count.
    retry_at
        Time of the next attempt; None for a dead letter, which isn't retried automatically.
    failed_at
        Time of the last failure.
    """

    episode_id: str
    error: str
    attempts: int
    retry_at: UTCDateTime | None = None
    failed_at: UTCDateTime | None = None


class QueueState(Model):
    """State of extraction.

    Attributes
    ----------
    state
        ``running``; ``waiting``: the model is unavailable; ``paused``: the configuration has to be repaired.
    reason
        The error.
    since
        Start of this state.
    next_try
        Time of the next attempt; no episode is extracted before.
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
    """State of an upkeep job in a scope.

    Attributes
    ----------
    done_at
        End of the last complete run; None before the first one.
    episodes
        Number of processed episodes of the scope at that time.
    begun_at
        Start of an unfinished run: it is still running, or was interrupted and resumes when it is due again.
    """

    job: str
    done_at: UTCDateTime | None = None
    episodes: int = 0
    begun_at: UTCDateTime | None = None


class Stats(Model):
    """Row counts of a scope and the state of its queue.

    Attributes
    ----------
    aliases
        All names of entities, their own canonical names among them: an entity without other names counts 1.
    pending_episodes, failed_episodes
        Episodes waiting for extraction; episodes without attempts left.
    community_members, waiting_entities
        Entities in a community of level 0; entities in none, because no neighbor is in one or a refresh is due.
    deleted_facts
        Superseded facts that evictions have deleted so far; this history is lost.
    expired_episodes
        Expired episodes that were erased so far.
    queue
        State of extraction, as known from this process or from the errors of the scope.
    errors
        Errors of failed episodes and of those waiting for a retry, at most 10; `GraphMemory.admin.dead_letters` returns
        all failed ones.
    upkeep
        State of each upkeep job.
    background
        Current errors of background work in this process.
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
    expired_episodes: int = 0
    recalls: int
    edges_by_type: dict[str, int]
    entities_by_type: dict[str, int]
    queue: QueueState = QueueState()
    errors: tuple[QueueError, ...] = ()
    upkeep: tuple[UpkeepState, ...] = ()
    background: tuple[str, ...] = ()


class Check(Model):
    """Result of one check of `doctor`."""

    name: str
    ok: bool
    detail: str


MAX_REJECTED = 1000
"""Maximum number of rejected items listed in a report; the count includes all."""


class Rejected(Model):
    """A rejected item, the reason, and its number among the given items, from 1; None for a line of a file."""

    item: str
    reason: str
    number: int | None = None


_TALLIES = ("dropped", "unknown_types", "unread_files", "dated_by")  # fields with numbers by name


class LoadReport(Model):
    """Result of a load.

    Attributes
    ----------
    received
        Number of items given.
    stored
        Number of new episodes.
    known
        Number of items already stored: by `external_id`, or a batch of facts that was added before.
    differing
        Number of known items whose fields differ from those stored, which stay as they are.
    replaced, removed
        Of an update: number of items stored in place of an earlier version of them; and of episodes that were erased
        because their file no longer has them, or is gone.
    skipped
        Number of episodes stored but not extracted, because the content filter excluded them.
    extracted
        Number of episodes that this load extracted, earlier ones that still waited included; those that the background
        extracted meanwhile are left out.
    failed
        Number of episodes whose last attempt failed: finally, or they wait for a retry.
    entities, edges
        Number of new rows; `supported`: facts stated again; `ended`: facts closed.
    rejected
        Rejected items, at most 1,000; `rejected_count` counts all.
    dropped
        Number of results dropped by extractors and limits, by reason, and of records whose nested field wasn't stored,
        by its name ("nested field 'history'").
    unknown_types
        Number of mentions whose stated type isn't in the ontology, by that type; it is stored as ``concept``.
    unread_files
        Number of files in folders and archives that were left out because of their kind, by suffix (``.pdf``),
        and as "template" and "other JSON".
    dated_by
        Number of files that date their texts, by what does: "front matter", "name", "text" or "modification time".
    notes
        How the columns of CSV files were read: those that are metadata only, and by what the rows are dated. How many
        entries of chat exports are no messages, by kind.
    seconds
        Wall time including indexing.
    """

    received: int = 0
    stored: int = 0
    known: int = 0
    differing: int = 0
    replaced: int = 0
    removed: int = 0
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
    unknown_types: dict[str, int] = {}
    unread_files: dict[str, int] = {}
    dated_by: dict[str, int] = {}
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @classmethod
    def combined(cls, reports: Sequence[LoadReport]) -> LoadReport:
        """Return the combined report of several consecutive loads."""
        counts = {
            name: sum(getattr(report, name) for report in reports)
            for name in cls.model_fields
            if name not in ("rejected", "notes", *_TALLIES)
        }
        rejected = tuple(each for report in reports for each in report.rejected)
        tallies = {name: Counter[str]() for name in _TALLIES}
        for report in reports:
            for name, tally in tallies.items():
                tally.update(getattr(report, name))
        merged: dict[str, Any] = {**counts, **{name: dict(tally) for name, tally in tallies.items()}}
        return cls(
            **merged,
            rejected=rejected[:MAX_REJECTED],
            notes=tuple(each for report in reports for each in report.notes),
        )
