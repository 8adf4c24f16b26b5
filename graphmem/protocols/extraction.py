"""Protocols of extractors and redactors, and the types of extraction requests and results."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from graphmem.models import Certainty, Episode


class Redactor(Protocol):
    """Removal of personal data from facts and summaries, or from all texts with the setting ``redact="all"``."""

    @abstractmethod
    def redact(self, text: str, names: Collection[str]) -> str:
        """Return the text without personal data; `names`, the canonical names of its entities, are exempt."""
        ...


@dataclass(frozen=True, slots=True)
class ExtractedEntity:
    """An entity as an extractor returned it: raw text, not yet cleaned or resolved.

    `guessed` True marks the type as a guess: an existing entity of that name takes precedence, and the first stated
    type of the entity replaces it. `aliases` are other names of it that the text tells.
    """

    name: str
    entity_type: str = "concept"
    summary: str = ""
    confidence: float = 1.0
    guessed: bool = False
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExtractedEdge:
    """A fact as an extractor returned it; its ends are names.

    `ended` True means that the fact stopped being true, at `valid_to` or by default when the episode occurred.
    `edge_type` None means unstated. `source_type` and `target_type` are the types of ends that aren't among the
    entities. `certainty` is "plan" for what is only intended, "hearsay" for a claim attributed to somebody else, and
    "possible" for a guess; a fact never ends a surer one. `kind` "event" marks what happened once and has no end.
    """

    source: str
    relation: str
    target: str
    edge_type: str | None = None
    fact: str = ""
    confidence: float = 1.0
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    ended: bool = False
    source_type: str | None = None
    target_type: str | None = None
    certainty: Certainty = "stated"
    kind: Literal["state", "event"] = "state"


EndingReason = Literal["over", "corrected", "continues"]
"""Statement of an ending about its fact."""


@dataclass(frozen=True, slots=True)
class ExtractedEnding:
    """The end of a known fact, which is named by its id or by source and relation.

    Parameters
    ----------
    source, relation
        "I was laid off" ends the current `works_at` of the source. Without a target and `others` only for single-valued
        relations.
    target
        Target of the fact, if it is named.
    fact_id
        Id of a fact that the request showed as known; source, relation and target are then not needed.
    valid_to
        When the fact ended; None: when the episode occurred.
    why
        "over": it stopped being true; "corrected": it never was; "continues": its end, told before, is called off.
    source_type
        Type of the source if it isn't among the entities.
    others
        What ends in place of the named fact, if anything. "targets": those with other targets, as in "my manager is Ida
        now", or all without a target, as in "I changed dentists"; "sources": those of other sources, as in "Ida is the
        CEO of Acme now".
    presumed
        The fact may not be known ("sold the car" ends "drives" and "owns"), which isn't counted.
    """

    source: str = ""
    relation: str = ""
    target: str | None = None
    fact_id: str | None = None
    valid_to: datetime | None = None
    why: EndingReason = "over"
    source_type: str | None = None
    others: Literal["", "targets", "sources"] = ""
    presumed: bool = False


@dataclass(frozen=True, slots=True)
class Extraction:
    """Result of extracting one episode. `dropped` counts items rejected by grounding or limits, by reason.

    `endings` apply before `edges`: "I lost my job and joined Acme" doesn't end the new job. `short_names` are canonical
    names of fewer than three characters that are names in this text, such as "ac" or "s3".
    """

    entities: tuple[ExtractedEntity, ...] = ()
    edges: tuple[ExtractedEdge, ...] = ()
    dropped: tuple[tuple[str, int], ...] = ()
    endings: tuple[ExtractedEnding, ...] = ()
    short_names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class KnownName:
    """An entity of the memory that an episode may name.

    `type_stated` is False if its type was never told; the first one that is told replaces it.
    """

    name: str
    entity_type: str
    aliases: tuple[str, ...] = ()
    type_stated: bool = True


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A fact of the memory that an episode may confirm, end or correct.

    `since` is None if its beginning isn't known; `told` is when it was stated first. An event happened between `since`
    and `until`.
    """

    id: str
    source: str
    relation: str
    target: str
    fact: str = ""
    since: datetime | None = None
    told: datetime | None = None
    until: datetime | None = None
    certainty: Certainty = "stated"
    kind: Literal["state", "event"] = "state"


@dataclass(frozen=True, slots=True)
class Known:
    """Names and facts of the memory that match the names and words of a request, the most relevant first."""

    names: tuple[KnownName, ...] = ()
    facts: tuple[KnownFact, ...] = ()


@dataclass(frozen=True, slots=True)
class ExtractionRequest:
    """An episode to extract from, with the preceding turns of its session, oldest first.

    `addressee` is the other speaker of the session if there is exactly one. `known` is empty for extractors without
    `reads_known`.
    """

    episode: Episode
    context: tuple[Episode, ...] = ()
    addressee: str | None = None
    known: Known = Known()


class Extractor(Protocol):
    """Extraction of entities and facts from episodes.

    An extractor with an optional property `concurrency` (int) above 1 is called from that many threads concurrently,
    with one episode per call, or with up to `turns_per_call` (int) successive turns of a session, or passages of a
    document. One with a true `reads_known` (bool) gets what is known in each request. One with a method `find_problem`
    says by it, without a call of a model, why it can't extract: a text, or None. `ExtractorUnavailable` and
    `ExtractorMisconfigured`, returned or raised, mean that the episode isn't the cause.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The name shown by stats and `doctor`."""
        ...

    @property
    @abstractmethod
    def batch_size(self) -> int:
        """The preferred number of episodes per call."""
        ...

    @abstractmethod
    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Extract entities and facts; errors of single episodes are returned, not raised.

        Returns
        -------
        list
            An `Extraction` or an error for each request, in order.
        """
        ...


def concurrency_of(extractor: Extractor) -> int:
    """Return the number of concurrent calls that an extractor accepts; 1 by default."""
    return int(getattr(extractor, "concurrency", 1))


def turns_per_call_of(extractor: Extractor) -> int:
    """Return the number of successive turns or passages that an extractor accepts in a call; 1 by default."""
    return int(getattr(extractor, "turns_per_call", 1))


def reads_known(extractor: Extractor) -> bool:
    """Return whether an extractor uses what is known; False by default."""
    return bool(getattr(extractor, "reads_known", False))


def problem_of(extractor: Extractor) -> str | None:
    """Return why an extractor can't extract, or None; only those with a method `find_problem` know."""
    return getattr(extractor, "find_problem", lambda: None)()


class ExtractorWrapper(Extractor):
    """Base of extractors that call another one, with its name, sizes and abilities; define `extract`.

    Parameters
    ----------
    extractor
        The other extractor.
    """

    def __init__(self, extractor: Extractor) -> None:
        self._extractor = extractor

    @property
    def name(self) -> str:
        """Name of the wrapped extractor."""
        return self._extractor.name

    @property
    def batch_size(self) -> int:
        """Batch size of the wrapped extractor."""
        return self._extractor.batch_size

    @property
    def concurrency(self) -> int:
        """Concurrency of the wrapped extractor."""
        return concurrency_of(self._extractor)

    @property
    def turns_per_call(self) -> int:
        """Turns per call of the wrapped extractor."""
        return turns_per_call_of(self._extractor)

    @property
    def reads_known(self) -> bool:
        """Whether the wrapped extractor uses what is known."""
        return reads_known(self._extractor)

    def find_problem(self) -> str | None:
        """Return why the wrapped extractor can't extract, or None."""
        return problem_of(self._extractor)
