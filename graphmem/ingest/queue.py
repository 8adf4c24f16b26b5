"""The durable queue: an episode without `processed_at` is waiting (spec: ingestion).

An episode is acknowledged when the store has it. Workers claim waiting episodes, extract them and write what
they say; a crash loses nothing, since the claim of a process that is gone is given back by the next one.
"""

from __future__ import annotations

import logging
import os
import socket
from asyncio import CancelledError
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from graphmem.errors import Conflict, ExtractionFailed, InvalidInput
from graphmem.ingest.contradict import ContradictionCheck
from graphmem.ingest.link import NoteLinks
from graphmem.ingest.similar import SimilarEntities
from graphmem.ingest.write import Reading, Writer, Written, read_extraction
from graphmem.models import Changes, Episode, EpisodeQuery, Outcome, Scope, new_id, utc_now
from graphmem.ontology import Ontology
from graphmem.protocols import Extraction, ExtractionRequest, Extractor, GraphBackend, Redactor
from graphmem.settings import Settings

_log = logging.getLogger(__name__)

_USER_ROLES = (None, "user", "human")
_SESSION_SAMPLE = 50  # turns of a session that tell who takes part in it
_live_owners: set[str] = set()  # rounds of the queues of this process that go on


@dataclass(slots=True)
class Processed:
    """What a round of the queue did."""

    claimed: int = 0
    failed: int = 0
    scopes: tuple[Scope, ...] = ()
    written: Written = field(default_factory=Written)


class ExtractionQueue:
    """Takes waiting episodes through extraction and writing.

    Parameters
    ----------
    backend
        The store, which holds the queue.
    extractor
        Reads the episodes.
    ontology
        Types and relations.
    settings
        Tries, delays, size of the context.
    contradictions
        The optional check of new facts against known ones.
    redactor
        The optional redaction of facts and summaries.
    similar, links
        As for `Writer`.
    """

    def __init__(
        self,
        backend: GraphBackend,
        extractor: Extractor,
        ontology: Ontology,
        settings: Settings,
        contradictions: ContradictionCheck | None = None,
        redactor: Redactor | None = None,
        similar: SimilarEntities | None = None,
        links: NoteLinks | None = None,
    ) -> None:
        self._backend = backend
        self._extractor = extractor
        self._ontology = ontology
        self._settings = settings
        self._contradictions = contradictions
        self._writer = Writer(backend, ontology, redactor, similar, links)
        self._owners: set[str] = set()

    def _release_dead(self) -> int:
        """Give back what processes of this machine that are gone, and rounds that failed, held; return how many."""
        dead = [owner for owner in self._backend.claim_owners() if _is_gone(owner)]
        released = self._backend.release_claims(dead) if dead else 0
        self._owners &= _live_owners
        return released

    def process(self, limit: int, scopes: Sequence[Scope] | None = None) -> Processed:
        """Claim up to `limit` waiting episodes, extract and write them.

        Where nothing else waits, what is held by processes of this machine that are gone, or by rounds of this one
        that failed, is taken as well.
        One that can't be extracted or written stays in the queue with its error; it never raises for that.

        Raises
        ------
        BackendUnavailable
            If the store is away; what was claimed is taken again when it has returned.
        """
        owner = f"{socket.gethostname()}:{os.getpid()}:{new_id()}"
        self._owners.add(owner)
        _live_owners.add(owner)
        try:
            done = self._round(owner, limit, scopes)
        finally:
            _live_owners.discard(owner)
        self._owners.discard(owner)  # a round that failed may hold claims
        return done

    def _round(self, owner: str, limit: int, scopes: Sequence[Scope] | None) -> Processed:
        episodes = self._claim(owner, limit, scopes)
        if not episodes and self._release_dead():
            episodes = self._claim(owner, limit, scopes)
        done = Processed(claimed=len(episodes))
        by_scope: defaultdict[Scope, list[Episode]] = defaultdict(list)
        for episode in episodes:
            by_scope[episode.scope].append(episode)
        done.scopes = tuple(by_scope)
        forgotten = False
        for scope, group in by_scope.items():
            since = self._backend.last_erasure(scope)
            self._process_scope(scope, group, done, since)
            forgotten |= self._backend.last_erasure(scope) != since
        if forgotten:  # what wasn't written for that is read again, without what was forgotten
            self._backend.release_claims([owner])
        return done

    def _claim(self, owner: str, limit: int, scopes: Sequence[Scope] | None) -> list[Episode]:
        now = utc_now()
        until = now + timedelta(seconds=self._settings.claim_seconds)
        return self._backend.claim_episodes(owner, now=now, until=until, limit=limit, scopes=scopes)

    def close(self) -> None:
        """Give back what this queue has claimed."""
        if owners := list(self._owners):
            self._backend.release_claims(owners)

    def _process_scope(self, scope: Scope, episodes: Sequence[Episode], done: Processed, since: str) -> None:
        requests = self._requests(scope, episodes)
        readings: list[Reading] = []
        failures: list[tuple[Episode, Exception]] = []
        for episode, result in zip(episodes, self._extract(requests), strict=True):
            read = result if isinstance(result, Exception) else self._read(episode, result, done)
            if isinstance(read, Exception):
                failures.append((episode, read))
            else:
                readings.append(read)
        if self._contradictions is not None:
            readings = [self._contradictions.check(self._backend, scope, r) for r in readings]
        failures += self._write(scope, readings, done.written, since)
        if failures:
            done.failed += len(failures)
            self._backend.atomic(lambda: self._write_failures(scope, failures))

    def _write_failures(self, scope: Scope, failures: Sequence[tuple[Episode, Exception]]) -> None:
        """Write why episodes failed; those that were forgotten meanwhile are left out."""
        now = utc_now()
        there = self._backend.get_episodes([scope], [episode.id for episode, _ in failures])
        outcomes = tuple(self._failure(e, error, now) for e, error in failures if e.id in there)
        self._backend.write(scope, Changes(outcomes=outcomes))

    def _extract(self, requests: Sequence[ExtractionRequest]) -> Sequence[Extraction | Exception]:
        try:
            results = self._extractor.extract(requests)
            if len(results) != len(requests):
                raise ExtractionFailed(f"{len(results)} results for {len(requests)} episodes")
            return results
        except (Exception, SystemExit, CancelledError) as error:  # noqa: BLE001 - plugins: a broken one must not end the queue
            _log.warning("extractor %s failed: %s", self._extractor.name, error)
            if len(requests) > 1 and not isinstance(error, ExtractionFailed):
                return [result for request in requests for result in self._extract([request])]  # it may be one text
            return [ExtractionFailed(f"{self._extractor.name}: {error!r}")] * len(requests)

    def _read(self, episode: Episode, extraction: Extraction, done: Processed) -> Reading | Exception:
        try:
            return read_extraction(episode, extraction, self._ontology, done.written.dropped)
        except Exception as error:  # noqa: BLE001 - extractors are plugins, and what they return isn't validated
            return ExtractionFailed(f"{self._extractor.name} returned what can't be read: {error}")

    def _write(
        self, scope: Scope, readings: Sequence[Reading], written: Written, since: str
    ) -> list[tuple[Episode, Exception]]:
        """Write all in one transaction; if one of them can't be written, each in its own."""
        if not readings:
            return []
        try:
            written.add(self._writer.write(scope, readings, since=since))
        except (InvalidInput, Conflict) as error:
            if len(readings) == 1:
                return [(readings[0].episode, error)]
            return [failure for reading in readings for failure in self._write(scope, [reading], written, since)]
        return []

    def _failure(self, episode: Episode, error: Exception, now: datetime) -> Outcome:
        attempts = episode.attempts + 1
        text = f"{type(error).__name__}: {error}"[:500]
        _log.warning("episode %s not extracted (try %d): %s", episode.id, attempts, text)
        if attempts >= self._settings.max_attempts:
            return Outcome(episode.id, error=text, attempts=attempts)
        delay = timedelta(seconds=self._settings.retry_delay * 2 ** (attempts - 1))
        return Outcome(episode.id, error=text, attempts=attempts, retry_at=now + delay)

    def _requests(self, scope: Scope, episodes: Sequence[Episode]) -> list[ExtractionRequest]:
        sessions = {e.session_id for e in episodes if e.session_id is not None}
        speakers = {session: self._speakers(scope, session) for session in sessions}
        requests: list[ExtractionRequest] = []
        for episode in episodes:
            named = _with_speaker(episode)
            others = speakers.get(episode.session_id or "", set()) - {named.speaker}
            addressee = next(iter(others)) if len(others) == 1 else None
            requests.append(ExtractionRequest(named, self._context(scope, episode), addressee))
        return requests

    def _speakers(self, scope: Scope, session: str) -> set[str | None]:
        query = EpisodeQuery(session_id=session)
        return {_with_speaker(e).speaker for e in self._backend.find_episodes([scope], query, limit=_SESSION_SAMPLE)}

    def _context(self, scope: Scope, episode: Episode) -> tuple[Episode, ...]:
        """Return the user turns before an episode in its session, oldest first."""
        turns = self._settings.context_turns
        if episode.session_id is None or not turns:
            return ()
        query = EpisodeQuery(session_id=episode.session_id, before=episode.id)
        earlier = self._backend.find_episodes([scope], query, limit=turns * 3, newest_first=True)
        users = [_with_speaker(e) for e in earlier if e.role in _USER_ROLES]
        return tuple(reversed(users[:turns]))


def _with_speaker(episode: Episode) -> Episode:
    """Give a message without a speaker the name that its role has."""
    if episode.speaker is not None or episode.source != "message":
        return episode
    return episode.changed(speaker="User" if episode.role in _USER_ROLES else "Assistant")


def _is_gone(owner: str) -> bool:
    """Tell whether the process that made a claim is known to be gone; one on another machine never is."""
    host, _, rest = owner.partition(":")
    pid = rest.partition(":")[0]
    if host != socket.gethostname() or not pid.isdigit():
        return False
    if int(pid) == os.getpid():
        return owner not in _live_owners
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
