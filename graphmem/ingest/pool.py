"""Worker pool that extracts episodes concurrently: scopes round-robin, each scope or session in order."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from graphmem.ingest.requests import may_be_read_together
from graphmem.models import Episode, Scope
from graphmem.protocols import enter_background

T = TypeVar("T")

_SCOPES_AT_ONCE = 64  # in one claim
_BUFFERED = 32  # maximum number of claimed episodes per worker that wait for an earlier one
_GROUP_LENGTH = 8_000  # characters of the turns of a group
_LONGEST_ORDERED = 120.0  # seconds that a write waits for earlier episodes of other sessions
_LONGEST_WAIT = 1.0  # seconds between two checks of `stopping`

ExtractionOrder = Literal["scope", "session"]
"""The unit whose episodes are extracted one after the other: a scope or a session."""

ExtractionLane = tuple[Scope, str]
"""Episodes that are extracted one after the other: a scope with an empty string, or a session of it."""


class ScopeRotation:
    """Round-robin order of the scopes with stored episodes, so that no scope blocks another."""

    def __init__(self) -> None:
        self._scopes: dict[Scope, None] = {}
        self._served: set[Scope] = set()
        self._lock = threading.Lock()

    def add(self, scopes: Iterable[Scope]) -> None:
        """Add scopes that may have pending episodes."""
        with self._lock:
            self._scopes.update(dict.fromkeys(scopes))

    def next(self, full: Collection[Scope] = ()) -> list[Scope]:
        """Return the next scopes in turn, without the `full` ones; an empty list if none may have pending episodes."""
        with self._lock:
            scopes = [scope for scope in self._scopes if scope not in full]
            found = [scope for scope in scopes if scope not in self._served]
            if not found:
                self._served.clear()
            return (found or scopes)[:_SCOPES_AT_ONCE]

    def record_claim(self, asked: Sequence[Scope], found: Iterable[Scope], *, all_due: bool) -> None:
        """Record a claim: the scopes it covered, those it found episodes in, and whether it returned all due ones."""
        with self._lock:
            if all_due:
                for scope in asked:
                    self._scopes.pop(scope, None)
            else:
                self._served.update(found)


@dataclass(slots=True, eq=False)
class _Round(Generic[T]):
    """State of one call of `ExtractionPool.run`."""

    work: Callable[[Sequence[Episode]], T]
    running: int = 0
    waiting: int = 0
    drained: set[Scope] = field(default_factory=set[Scope])  # scopes in which the last claim found nothing
    results: list[T] = field(default_factory=list[T])
    errors: list[BaseException] = field(default_factory=list[BaseException])


@dataclass(frozen=True, slots=True)
class _Entry(Generic[T]):
    episode: Episode
    lane: ExtractionLane
    round: _Round[T]


class ExtractionPool(Generic[T]):
    """Pool that runs at most `concurrency` groups of episodes at once over all threads that call `run`.

    A group is one episode, or up to `group` successive turns of a session, or passages of a document, that wait
    together. Each scope has one running group, that of its oldest episodes, so that a prompt shows the facts of the
    earlier ones; with the order "session", each session has one, and each episode without a session. Each runs on its
    own daemon thread, so that a hanging call doesn't block the exit of the program. A group that waits for its turn to
    write (`in_order`) doesn't count, so that other sessions go on.
    """

    def __init__(self, concurrency: int, group: int = 1, order: ExtractionOrder = "scope") -> None:
        self._concurrency = concurrency
        self._group = group
        self._order: ExtractionOrder = order
        self._free = concurrency
        self._waiting: list[_Entry[T]] = []
        self._busy: set[ExtractionLane] = set()
        self._held: dict[str, ExtractionLane | None] = {}  # with the lane if episodes of others may wait for it
        self._events = 0
        self._claiming = threading.Lock()
        self._changed = threading.Condition()

    def notify(self) -> None:
        """Wake the threads in `run` so that they claim again."""
        with self._changed:
            self._events += 1
            self._changed.notify_all()

    def run(
        self,
        claim: Callable[[int, Collection[Scope]], Sequence[Episode]],
        work: Callable[[Sequence[Episode]], T],
        limit: int | None,
        *,
        on_result: Callable[[T], None],
        stopping: Callable[[], bool],
    ) -> bool:
        """Claim and process episodes until none is left.

        Parameters
        ----------
        claim
            Returns at most the given number of episodes, of other scopes than the given ones.
        work
            Called with each group of episodes, on a thread of its own.
        limit
            Maximum number of episodes; None is no limit.
        on_result
            Called with each result of `work`, on the thread of the caller.
        stopping
            Polled; returns True to stop claiming and starting episodes.

        Returns
        -------
        bool
            Whether claimed episodes were left unprocessed.

        Raises
        ------
        BaseException
            The first exception of `work`, or of another call, after the running groups have ended.
        """
        mine, left, abandoned = _Round(work), limit, False
        while True:
            with self._changed:
                seen = self._events
            stop, claimed = bool(mine.errors), list[Episode]()
            try:
                stop = stop or stopping()
                if stop:
                    abandoned |= self._drop(mine)
                elif left != 0 and (most := self._room(mine)):
                    claimed += self._claim_some(mine, claim, most, left)
                    left = None if left is None else left - len(claimed)
                with self._changed:
                    self._start_ready()
                while mine.results:
                    on_result(mine.results.pop(0))
            except Exception as error:  # noqa: BLE001 - raised below, after the running groups have ended
                mine.errors.append(error)
                continue
            if claimed:
                continue
            with self._changed:
                idle = not (mine.running or mine.waiting or mine.results)
                if idle and (stop or left == 0 or self._events == seen):
                    break
                self._changed.wait_for(lambda before=seen: self._events != before, _LONGEST_WAIT)
        if mine.errors:
            raise mine.errors[0]
        return abandoned

    def _claim_some(
        self,
        mine: _Round[T],
        claim: Callable[[int, Collection[Scope]], Sequence[Episode]],
        most: int,
        left: int | None,
    ) -> Sequence[Episode]:
        """Claim and queue at most `most` episodes, and at most `left`; return them."""
        with self._claiming:  # serializes claim and add, so that turns are queued in the order of claims
            full = self._full()
            claimed = claim(most if left is None else min(most, left), full)
            self._add(mine, claimed)
        if left == len(claimed):
            self._note_drained(mine, (), ())  # this round claims no more
        else:
            self._note_drained(mine, full, claimed)
        return claimed

    def in_order(self, episodes: Sequence[Episode], late: Collection[str]) -> Iterator[Sequence[Episode]]:
        """Yield the episodes of a group in parts to write.

        An episode whose id is in `late` is yielded once all episodes stored earlier in other sessions of its scope are
        written or have failed, in whatever order the calls return; the others don't wait. It waits neither for retries,
        whose session may be waiting itself, nor longer than `_LONGEST_ORDERED`. Call it in `work`, after the calls of
        the extractor.
        """
        own, left = self._lane(episodes[0]), list(episodes)

        def due() -> int:
            others = (i for i, lane in self._held.items() if lane is not None and lane[0] == own[0] and lane != own)
            first = min(others, default=None)
            waits = (n for n, e in enumerate(left) if first is not None and e.id in late and e.id > first)
            return next(waits, len(left))

        with self._changed:
            self._free += 1
            self._start_ready()
            self._events += 1  # a group that may grow starts after the next claim
            self._changed.notify_all()
        try:
            while left:
                with self._changed:
                    ordered = self._changed.wait_for(lambda: due() > 0, _LONGEST_ORDERED)
                    part = left[: due()] if ordered else list(left)
                yield part
                left = left[len(part) :]
                self._finish(part)
        finally:
            with self._changed:
                self._free -= 1

    def _finish(self, episodes: Sequence[Episode]) -> None:
        """Let later episodes of the scope be written."""
        with self._changed:
            for episode in episodes:
                self._held.pop(episode.id, None)
            self._changed.notify_all()

    def _lane(self, episode: Episode) -> ExtractionLane:
        return episode.scope, "" if self._order == "scope" else episode.session_id or episode.id

    def _full(self) -> list[Scope]:
        """Return the scopes whose next group is already claimed; more claims would expire before their turn."""
        if self._order == "session":
            return []
        with self._changed:
            waiting = Counter(entry.episode.scope for entry in self._waiting)
        return [scope for scope, count in waiting.items() if count >= self._group]

    def _room(self, mine: _Round[T]) -> int:
        """Return the number of episodes to claim; larger buffers are allowed while workers idle on busy lanes."""
        with self._changed:
            most = _BUFFERED * self._concurrency
            if mine.running < most and (mine.waiting < self._concurrency or (self._free > 0 and mine.waiting < most)):
                return 2 * self._concurrency * self._group
            return 0

    def _add(self, mine: _Round[T], episodes: Sequence[Episode]) -> None:
        with self._changed:
            for episode in episodes:
                if episode.id in self._held:
                    continue  # its claim expired while it was waiting here
                lane = self._lane(episode)
                self._held[episode.id] = None if episode.attempts else lane
                mine.waiting += 1
                self._waiting.append(_Entry(episode, lane, mine))

    def _note_drained(self, mine: _Round[T], full: Collection[Scope], claimed: Collection[Episode]) -> None:
        """Record the scopes in which a claim found nothing, though they weren't full; both empty: all scopes."""
        with self._changed:
            if not claimed:
                waiting = (entry.episode.scope for entry in self._waiting if entry.round is mine)
                mine.drained = set(waiting).difference(full)
            mine.drained.difference_update(episode.scope for episode in claimed)

    def _drop(self, mine: _Round[T]) -> bool:
        with self._changed:
            dropped = [entry for entry in self._waiting if entry.round is mine]
            self._waiting = [entry for entry in self._waiting if entry.round is not mine]
            for entry in dropped:
                self._held.pop(entry.episode.id, None)
            self._changed.notify_all()
            mine.waiting = 0
            return bool(dropped)

    def _start_ready(self) -> None:
        """Start waiting episodes in order of arrival, for each idle lane only its first."""
        if self._free <= 0 or not self._waiting:
            return
        first: dict[ExtractionLane, str] = {}
        for entry in self._waiting:
            first[entry.lane] = min(first.get(entry.lane, entry.episode.id), entry.episode.id)
        started: set[str] = set()
        for entry in self._waiting:
            if self._free <= 0 or entry.lane in self._busy or first[entry.lane] != entry.episode.id:
                continue
            group = self._successive(entry)
            if self._may_grow(group):
                continue
            thread = threading.Thread(target=self._work, args=(group,), name="graphmem-extract-one", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # no thread can be started; the round of the group ends
                entry.round.errors.append(error)
                self._events += 1
                self._changed.notify_all()
                break
            started.update(each.episode.id for each in group)
            self._free -= 1
            self._busy.add(entry.lane)
            entry.round.waiting -= len(group)
            entry.round.running += 1
        self._waiting = [entry for entry in self._waiting if entry.episode.id not in started]

    def _successive(self, first: _Entry[T]) -> list[_Entry[T]]:
        """Return an entry and those that follow it in its lane, as long as they may be read in one call.

        An episode that failed before is read alone.
        """
        lane = sorted((e for e in self._waiting if e.lane == first.lane), key=lambda e: e.episode.id)
        group, size = [first], len(first.episode.text)
        for entry in lane[1 : self._group]:
            size += len(entry.episode.text)
            failed_before = first.episode.attempts or entry.episode.attempts
            if entry.round is not first.round or size > _GROUP_LENGTH or failed_before:
                break
            if not may_be_read_together(first.episode, entry.episode):
                break
            group.append(entry)
        return group

    def _may_grow(self, group: Sequence[_Entry[T]]) -> bool:
        """Return whether the next claim may find turns for a group, which must not depend on the time of the claim."""
        last, mine = group[-1], group[0].round
        if len(group) >= self._group or last.episode.scope in mine.drained or self._room(mine) <= 0:
            return False
        return not any(e.lane == last.lane and e.episode.id > last.episode.id for e in self._waiting)

    def _work(self, group: Sequence[_Entry[T]]) -> None:
        enter_background()
        entry = group[0]
        mine = entry.round
        try:
            outcome = [mine.work([each.episode for each in group])]
        except BaseException as error:  # noqa: BLE001 - raised again by `run`
            outcome = []
            mine.errors.append(error)
        with self._changed:
            mine.results += outcome
            mine.running -= 1
            self._free += 1
            self._busy.discard(entry.lane)
            for each in group:
                self._held.pop(each.episode.id, None)
            self._events += 1
            self._start_ready()
            self._changed.notify_all()
