"""What reading texts needs: extractors, what they say of an episode, and redaction."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from graphmem.models import Episode


class Redactor(Protocol):
    """Takes personal data out of facts and summaries, or with the setting ``redact="all"`` out of every text."""

    @abstractmethod
    def redact(self, text: str, names: Collection[str]) -> str:
        """Return the text without personal data; the canonical `names` it is about are exempt."""
        ...


@dataclass(frozen=True, slots=True)
class ExtractedEntity:
    """An entity as an extractor named it: raw words, not yet cleaned or resolved.

    `guessed` True says that its type is a guess: whatever is known by that name goes before it, and the first who
    states a type of that entity gives it.
    """

    name: str
    entity_type: str = "concept"
    summary: str = ""
    confidence: float = 1.0
    guessed: bool = False


@dataclass(frozen=True, slots=True)
class ExtractedEdge:
    """A fact as an extractor stated it; its ends are names.

    `ended` True says that the fact stopped being true, at `valid_to` or else when the episode occurred.
    `edge_type` None means unstated. An end that isn't among the entities is one of `source_type` / `target_type`.
    `hearsay` True says that somebody else said or believes it: it ends no known fact of higher confidence.
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
    hearsay: bool = False


@dataclass(frozen=True, slots=True)
class ExtractedEnding:
    """What stopped being true without being named: "I was laid off" ends the `works_at` of the source, whatever it is.

    Only for relations with one value; at `valid_to`, or else when the episode occurred.
    """

    source: str
    relation: str
    valid_to: datetime | None = None
    source_type: str | None = None


@dataclass(frozen=True, slots=True)
class Extraction:
    """What one episode says. `dropped` counts what was cut by grounding or limits, by reason.

    `endings` come before `edges`: "I lost my job and joined Acme" doesn't end the new job.
    """

    entities: tuple[ExtractedEntity, ...] = ()
    edges: tuple[ExtractedEdge, ...] = ()
    dropped: tuple[tuple[str, int], ...] = ()
    endings: tuple[ExtractedEnding, ...] = ()


@dataclass(frozen=True, slots=True)
class ExtractionRequest:
    """An episode to read, with the turns of its session before it, oldest first.

    `addressee` is the other speaker of the session where there is exactly one.
    """

    episode: Episode
    context: tuple[Episode, ...] = ()
    addressee: str | None = None


class Extractor(Protocol):
    """Turns episodes into entities and facts.

    One that also has a property `concurrency` (int) above 1 is called from that many threads at once, each time with
    one episode. `ExtractorUnavailable` and `ExtractorMisconfigured`, returned or raised, tell that the cause isn't in
    the episode.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """What stats and `doctor` call it."""
        ...

    @property
    @abstractmethod
    def batch_size(self) -> int:
        """How many episodes it likes to get at once."""
        ...

    @abstractmethod
    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Read episodes; never raises for one of them.

        Returns
        -------
        list
            In the order of the requests: an `Extraction`, or the error that kept it from being made.
        """
        ...


def concurrency_of(extractor: Extractor) -> int:
    """Return how many calls at once an extractor takes: 1 where it doesn't say."""
    return int(getattr(extractor, "concurrency", 1))
