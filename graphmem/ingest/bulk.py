"""Bulk loading in batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import TypeVar

from graphmem.errors import InvalidInput
from graphmem.ingest.content_filter import skip_reason
from graphmem.ingest.entity_matching import SimilarEntities
from graphmem.ingest.interpretation import ExtractedFact, InterpretedEpisode, statement_of
from graphmem.ingest.note_links import NoteLinks
from graphmem.ingest.queue import ExtractionQueue, Processed
from graphmem.ingest.redaction import Redaction
from graphmem.ingest.triple_episodes import StatedTriple, of_episodes, triple_episode
from graphmem.ingest.turn_writer import Stored
from graphmem.ingest.write import Writer, Written
from graphmem.inputs import Item, ItemLike, Triple, TripleLike, to_item
from graphmem.messages import digest
from graphmem.models import Episode, EpisodeQuery, Model, Scope, utc_now
from graphmem.models.metadata import SKIPPED, SOURCE_PATH, UTC_OFFSET
from graphmem.ontology import Ontology
from graphmem.process import gc_paused
from graphmem.protocols import ExtractedEdge, GraphBackend, Redactor
from graphmem.results import MAX_REJECTED, LoadReport, Rejected
from graphmem.text.normalize import MIN_NAME_LENGTH, canonical

T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5  # seconds between two looks at what others extract


@dataclass(slots=True)
class Progress:
    """Progress of a load: the counts of `LoadReport`, and in `indexed` the rows that search can already find.

    `failing` holds the ids of episodes whose last attempt failed; one that a later attempt extracts leaves it.
    """

    received: int = 0
    stored: int = 0
    known: int = 0
    differing: int = 0
    replaced: int = 0
    skipped: int = 0
    extracted: int = 0
    failing: set[str] = field(default_factory=set[str])
    rejected_count: int = 0
    rejected: list[Rejected] = field(default_factory=list[Rejected])
    written: Written = field(default_factory=Written)
    indexed: int = 0
    extracts: bool = False
    indexes: bool = False

    @property
    def failed(self) -> int:
        """Number of episodes whose last attempt failed."""
        return len(self.failing)

    @property
    def to_index(self) -> int:
        """Number of rows to index: new and replaced episodes, and facts."""
        return self.stored + self.replaced + self.written.edges

    @property
    def share(self) -> float:
        """Completed share of the received items, in [0, 1]; counts extraction and indexing where the load does them."""
        settled = self.extracted + self.failed + self.skipped + self.known
        done = settled * self.extracts + self.indexed * self.indexes
        whole = self.received * self.extracts + self.to_index * self.indexes
        return min(1.0, done / whole) if whole else 1.0

    def reject(self, item: object, error: Exception, redaction: Redaction | None, number: int) -> None:
        """Count a rejected item and keep up to `MAX_REJECTED` of them for the report, redacted; numbers begin at 1."""
        self.rejected_count += 1
        if len(self.rejected) < MAX_REJECTED:
            texts = f"{item!r:.1000}", str(error)
            shown, reason = texts if redaction is None else map(redaction.text, texts)
            self.rejected.append(Rejected(item=shown[:200], reason=reason, number=number))

    def report(self, seconds: float) -> LoadReport:
        """Return the final report: its counts, by name, of the writes and of the load."""
        parts = (self.written, self)
        counts = {
            name: getattr(part, name) for part in parts for name in LoadReport.model_fields if hasattr(part, name)
        }
        return LoadReport(**counts, seconds=seconds)


OnProgress = Callable[[Progress], None]
Index = Callable[[Scope, Callable[[int], None]], None]
"""(scope, progress callback) → None. Indexes all pending rows of a scope; the callback gets the rows done so far."""

Erase = Callable[[Scope, Mapping[str, Episode]], Callable[[], None]]
"""Erases stored episodes, by id, in a transaction; returns what is to be called after it."""

Detector = Callable[[Episode], bool]

_LOAD_METADATA = ("file", "line", SOURCE_PATH, SKIPPED)
"""Metadata that may change between two loads of the same item."""

_SAME_LIFETIME = timedelta(seconds=1)  # lifetimes are counted from two readings of the clock


class Loader:
    """Loader of items and triples into one store.

    Parameters
    ----------
    backend
        The store.
    ontology
        Types and relations.
    queue
        Extracts the stored episodes; None leaves them pending.
    redactor
        The optional redaction of facts and summaries.
    redaction
        The optional redaction of all stored texts.
    detector
        Detects text that looks like a prompt injection; None trusts every text.
    batch_size
        Items or triples per transaction.
    similar, links
        As for `Writer`.
    clock
        Returns the current time; lifetimes (`expires_in`) start there.
    """

    def __init__(
        self,
        backend: GraphBackend,
        ontology: Ontology,
        queue: ExtractionQueue | None,
        *,
        redactor: Redactor | None,
        redaction: Redaction | None = None,
        detector: Detector | None,
        batch_size: int,
        similar: SimilarEntities | None = None,
        links: NoteLinks | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._clock = clock
        self._backend = backend
        self._ontology = ontology
        self._queue = queue
        self._redaction = redaction
        self._detector = detector
        self._batch_size = batch_size
        self._writer = Writer(backend, ontology, redactor, similar, links, bulk=True)

    def to_episode(self, scope: Scope, item: Item) -> Episode:
        """Return the episode of an item; one that the content filter excludes is marked as processed."""
        episode = item.to_episode(scope, self._clock())
        if self._redaction is not None:
            episode = self._redaction.episode(episode)
        return self.filtered(episode)

    def filtered(self, episode: Episode) -> Episode:
        """Return an episode, marked as processed if the content filter excludes it."""
        reason = skip_reason(episode, detector=self._detector)
        if reason is None:
            return episode
        return episode.changed(processed_at=episode.recorded_at, metadata={**episode.metadata, SKIPPED: reason})

    def ingest(
        self,
        scope: Scope,
        items: Iterable[ItemLike],
        *,
        skip_invalid: bool,
        on_progress: OnProgress | None,
        index: Index,
        erase: Erase | None = None,
    ) -> LoadReport:
        """Store, extract and index items batch by batch, with memory use independent of their number.

        An item whose `external_id` is already stored is not stored again; if its episode is still pending, it is
        extracted. With `erase`, an episode from which its item differs is erased, and the item stored in its place;
        of several items with one id, the first counts.
        """
        started, progress = time.perf_counter(), Progress(extracts=self._queue is not None, indexes=True)
        seen = set[str]()
        with nullcontext() if self._queue is None else self._queue.reserved(scope):
            for batch in _batches(items, self._batch_size):
                episodes = self._read(scope, batch, progress, skip_invalid=skip_invalid)
                if erase is None:
                    added, replaced = self._backend.add_episodes(scope, episodes), 0
                    progress.differing += self._count_differing(scope, zip(added, episodes, strict=True))
                else:
                    added, replaced = self._replace(scope, episodes, _first(episodes, seen), erase)
                created = [new for _, new in added]
                progress.received += len(batch)
                progress.stored += sum(created) - replaced
                progress.replaced += replaced
                progress.known += len(created) - sum(created)
                progress.skipped += sum(
                    new and e.processed_at is not None for e, new in zip(episodes, created, strict=True)
                )
                self._extract(scope, progress, on_progress)
            self._extract(scope, progress, on_progress)

        def indexed(rows: int) -> None:
            progress.indexed = min(rows, progress.to_index)
            if on_progress is not None:
                on_progress(progress)

        index(scope, indexed)
        indexed(progress.to_index)
        return progress.report(time.perf_counter() - started)

    def preview(self, scope: Scope, items: Iterable[ItemLike], *, skip_invalid: bool, update: bool) -> LoadReport:
        """Return what `ingest` would count of these items, and change nothing; `update` stands for its `erase`."""
        started, progress, seen = time.perf_counter(), Progress(), set[str]()
        compared: dict[str, Episode] = {}
        for batch in _batches(items, self._batch_size):
            episodes = [_digested(each) for each in self._read(scope, batch, progress, skip_invalid=skip_invalid)]
            first = _first(episodes, seen)
            known = {key: _digested(stored) for key, stored in self._known(scope, list(first)).items()}
            compared |= first | known
            told = first.values() if update else episodes
            differing = sum(_differs(compared[each.external_id], each) for each in told if each.external_id is not None)
            new = len(first) - len(known) + sum(episode.external_id is None for episode in episodes)
            progress.received += len(batch)
            progress.stored += new
            progress.known += len(episodes) - new - (differing if update else 0)
            progress.differing += 0 if update else differing
            progress.replaced += differing if update else 0
        return progress.report(time.perf_counter() - started)

    def _read(
        self, scope: Scope, batch: Sequence[ItemLike], progress: Progress, *, skip_invalid: bool
    ) -> list[Episode]:
        """Return the episodes of a batch without its invalid items."""
        episodes: list[Episode] = []
        for number, item in enumerate(batch, progress.received + 1):
            try:
                episodes.append(self.to_episode(scope, to_item(item)))
            except InvalidInput as error:
                if not skip_invalid:
                    raise
                progress.reject(item, error, self._redaction, number)
        return episodes

    def _known(self, scope: Scope, external_ids: Sequence[str]) -> dict[str, Episode]:
        """Return the stored episodes with these external ids, by them."""
        query = EpisodeQuery(external_ids=tuple(external_ids))
        found = self._backend.find_episodes([scope], query, limit=len(external_ids)) if external_ids else ()
        return {episode.external_id or "": episode for episode in found}

    def _replace(
        self, scope: Scope, episodes: Sequence[Episode], first: Mapping[str, Episode], erase: Erase
    ) -> tuple[Sequence[Stored], int]:
        """Store episodes, those of `first` in place of what is stored under their ids; return the number of these."""

        def work() -> tuple[Sequence[Stored], int, Callable[[], None] | None]:
            known = self._known(scope, list(first))
            gone = {stored.id: stored for key, stored in known.items() if _differs(stored, first[key])}
            after = erase(scope, gone) if gone else None
            return self._backend.add_episodes(scope, episodes), len(gone), after

        added, replaced, after = self._backend.atomic(work)
        if after is not None:
            after()
        return added, replaced

    def _count_differing(self, scope: Scope, added: Iterable[tuple[Stored, Episode]]) -> int:
        """Return how many of the episodes that were known differ from what is stored."""
        known = [(number, episode) for (number, new), episode in added if not new]
        stored = self._backend.get_episodes([scope], [number for number, _ in known]) if known else {}
        return sum(_differs(stored[number], episode) for number, episode in known if number in stored)

    def extract_waiting(self, scope: Scope, limit: int | None, on_progress: OnProgress | None) -> LoadReport:
        """Extract at most `limit` of the pending episodes."""
        started, progress = time.perf_counter(), Progress()
        self._extract(scope, progress, on_progress, limit)
        return progress.report(time.perf_counter() - started)

    def _extract(
        self, scope: Scope, progress: Progress, on_progress: OnProgress | None, limit: int | None = None
    ) -> None:
        def count(done: Processed) -> None:
            progress.extracted += len(done.extracted)
            progress.failing |= set(done.failing)
            progress.failing -= set(done.extracted)
            progress.written.add(done.written)
            if on_progress is not None:
                on_progress(progress)

        left, pause = limit, _FIRST_PAUSE
        while self._queue is not None and left != 0:
            done = self._queue.process(left, [scope], on_step=count)
            left = None if left is None else left - done.claimed
            if done.claimed:
                pause = _FIRST_PAUSE
            elif limit is None and self._queue.is_extracted_elsewhere(scope):
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                break
        if on_progress is not None:
            on_progress(progress)

    def add_facts(
        self,
        scope: Scope,
        triples: Iterable[TripleLike],
        *,
        occurred_at: datetime | None,
        skip_invalid: bool,
        on_progress: OnProgress | None,
    ) -> LoadReport:
        """Store ready-made triples, one transaction per batch.

        Triples with a `source` belong to the episode of that `external_id`; of those of a batch without one, each 50
        share an episode. Adding the same triples again changes nothing; those of a batch that was added before are
        counted as known.
        """
        started, progress = time.perf_counter(), Progress()
        for batch in _batches(triples, self._batch_size):
            with gc_paused:
                written = self._add_batch(scope, batch, occurred_at, skip_invalid, progress)
            progress.received += len(batch)
            progress.stored += written.episodes
            progress.known += written.known
            progress.written.add(written)
            if on_progress is not None:
                on_progress(progress)
        return progress.report(time.perf_counter() - started)

    def _add_batch(
        self,
        scope: Scope,
        batch: Iterable[TripleLike],
        occurred_at: datetime | None,
        skip_invalid: bool,
        progress: Progress,
    ) -> Written:
        groups: dict[str | None, list[StatedTriple]] = {}
        for number, value in enumerate(batch, progress.received + 1):
            try:
                triple = Triple.of(value)
                if self._redaction is not None:
                    triple = self._redaction.triple(triple)
                statement = self._statement(triple, occurred_at, self._short_names(scope, triple))
                groups.setdefault(triple.source or None, []).append((triple, statement))
            except InvalidInput as error:
                if not skip_invalid:
                    raise type(error)(f"fact {number}: {error}") from error
                progress.reject(value, error, self._redaction, number)
        return self._write_triples(scope, groups, occurred_at)

    def _short_names(self, scope: Scope, triple: Triple) -> frozenset[str]:
        """Return the short names that are valid for this fact in addition to those of the ontology."""
        target = canonical(triple.object)
        numbers = frozenset({target} if target.isdecimal() else ())
        short = {name for name in (canonical(triple.subject), target) if 0 < len(name) < MIN_NAME_LENGTH}
        if not (unlisted := short - self._ontology.short_names - numbers):
            return numbers
        return numbers | {name for name, _ in self._backend.resolve_names(scope, sorted(unlisted))}

    def _statement(self, triple: Triple, occurred_at: datetime | None, short_names: frozenset[str]) -> ExtractedFact:
        edge = ExtractedEdge(
            source=triple.subject,
            relation=triple.relation,
            target=triple.object,
            edge_type=triple.edge_type,
            fact=triple.fact,
            confidence=triple.confidence,
            valid_from=triple.valid_from or (None if triple.valid_to else occurred_at),
            valid_to=triple.valid_to,
            source_type=triple.subject_type,
            target_type=triple.object_type,
        )
        if triple.edge_type is not None:
            self._ontology.require_edge_type(triple.edge_type)
        triple.require_period()
        return statement_of(edge, {}, self._ontology, allowed=short_names, properties=triple.metadata)

    def _write_triples(
        self, scope: Scope, groups: dict[str | None, list[StatedTriple]], occurred_at: datetime | None
    ) -> Written:
        readings = [
            InterpretedEpisode(
                triple_episode(scope, source, group, occurred_at),
                (),
                tuple(statement for _, statement in group),
                settles=False,
                is_list=source is None,
            )
            for source, group in of_episodes(groups)
        ]
        return self._writer.write(scope, readings, new_episodes=[reading.episode for reading in readings])


def _first(episodes: Sequence[Episode], seen: set[str]) -> dict[str, Episode]:
    """Return the episodes of external ids that aren't in `seen`, the first of each, and add their ids to it."""
    found: dict[str, Episode] = {}
    for episode in episodes:
        if episode.external_id is not None and episode.external_id not in seen:
            found.setdefault(episode.external_id, episode)
    seen.update(found)
    return found


def _differs(stored: Episode, given: Episode) -> bool:
    """Return whether an episode was given again with another text, other fields or other metadata.

    Its time and its expiry are compared if they are given.
    """
    names = ("text", "speaker", "role", "session_id", "title", "attachments")
    told = given.source == "message" and given.occurred_at != given.recorded_at
    ignored = _LOAD_METADATA if told else (*_LOAD_METADATA, UTC_OFFSET)
    keys = (stored.metadata.keys() | given.metadata.keys()).difference(ignored)
    return (
        any(getattr(stored, name) != getattr(given, name) for name in names)
        or (told and given.occurred_at != stored.occurred_at)
        or (given.expires_at is not None and _expires_differently(stored, given))
        or any(stored.metadata.get(key) != given.metadata.get(key) for key in keys)
    )


def _expires_differently(stored: Episode, given: Episode) -> bool:
    """Return whether neither the end nor the lifetime of an episode is that of the stored one."""
    if stored.expires_at is None or given.expires_at is None:
        return stored.expires_at != given.expires_at
    lifetimes = (stored.expires_at - stored.recorded_at, given.expires_at - given.recorded_at)
    return stored.expires_at != given.expires_at and abs(lifetimes[0] - lifetimes[1]) > _SAME_LIFETIME


def _digested(episode: Episode) -> Episode:
    """Return an episode with a digest of its text, which is as good for `_differs` and takes less memory."""
    return episode.changed(text=digest(episode.text))


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    if isinstance(items, (str, bytes, Mapping, Model)) or not isinstance(items, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(
            f"{items!r:.120}: expected a list or another iterable of items; wrap a single item in a list, and pass a "
            "file as a pathlib.Path"
        )
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
