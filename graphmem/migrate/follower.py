"""Transfer of the changes of a process to the secondary of a migration, in the background."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, takewhile
from typing import Literal

from graphmem.background import BackgroundJob
from graphmem.errors import Conflict, InvalidInput, StoreMoved
from graphmem.migrate.copy import repair
from graphmem.migrate.states import is_followed
from graphmem.migrate.tokens import (
    Version,
    advanced,
    is_equal,
    is_usable,
    late_slots,
    place_versions,
    scrub,
    token_of,
)
from graphmem.migrate.transfer import ChangedRows, transfer
from graphmem.migrate.verify import Read, compare
from graphmem.models import Scope
from graphmem.protocols import GraphBackend

_PENDING = 1000  # batches of a scope that are kept; more are joined in pairs
_AT_ONCE = 3000  # rows of a scope that are transferred together, if they are of several transactions
_SMALL = 5000  # episodes and entities of a scope that a process copies by itself
_PATIENCE = 15.0  # seconds after which changes that nobody transfers are repaired
_POLL_COPY = 0.25  # polling interval of a copy, and of changes of another process that come first, in seconds
_POLL_LATE = 5.0  # interval in seconds at which changes of other processes are checked
_GATHER, _REST, _LONGEST_REST = 2.5, 6, 4.0  # seconds to gather changes: at least, times the last run, and at most
_PAUSE = 0.25  # seconds without a change after which nobody waits for more
_READS = 100  # shadow reads that wait

_Followed = Literal["done", "waits for others", "waits for a copy"]


@dataclass(frozen=True, slots=True)
class Batch:
    """The changes of one transaction in one scope, or of several.

    Attributes
    ----------
    scope
        The scope.
    version
        The transactions in the token of the scope.
    changed
        The rows that they changed.
    """

    scope: Scope
    version: Version
    changed: ChangedRows

    @property
    def number(self) -> int:
        """Ascending in the order of the transactions: threads may put their batches in another order."""
        return self.version.number

    def joined(self, later: Batch) -> list[Batch]:
        """Return this batch and a later one as one, or both if the later one doesn't follow it directly."""
        if later.version.before != self.version.id:
            return [self, later]  # another slot, or a thread hasn't put the one between them yet
        version = replace(self.version, id=later.version.id, number=later.version.number)
        return [Batch(self.scope, version, ChangedRows.union((self.changed, later.changed)))]


@dataclass(frozen=True, slots=True)
class _FailedRepair:
    """A repair that failed at a time; `token` is that of the scope in the secondary, "" if it wasn't read since."""

    at: float
    error: Exception
    token: str = ""


class _GatheringJob(BackgroundJob):
    """A job that gathers changes while callers go on, as a large transaction costs little more than a small one.

    It waits for them to pause for some seconds at most.
    """

    def __init__(self, name: str, job: Callable[[], float | None]) -> None:
        super().__init__(name, job)
        self._hurries = threading.Event()

    def hurry(self) -> None:
        """Run at once from now on."""
        self._hurries.set()

    def stop(self, timeout: float | None = None) -> bool:
        """Stop the thread after the current run; return whether it ended within `timeout` seconds."""
        self._hurries.set()
        return super().stop(timeout)

    def _wait_for_quiet(self, duration: float) -> None:
        latest = time.monotonic() + min(max(_GATHER, _REST * duration), _LONGEST_REST)
        while (left := min(latest, self._woken_at + _PAUSE) - time.monotonic()) > 0:
            if self._hurries.wait(left):
                return


class Follower:
    """Transfers the changes of this process to the secondary, and repairs what it finds to be missing there.

    The tokens show which changes weren't transferred, so the queue needn't be durable: a full queue, a failure or the
    end of the process leaves a difference that a repair of the scope removes (`graphmem.migrate.copy.repair`).

    Parameters
    ----------
    primary
        The store with the changes.
    open_secondary
        Opens the other store; called in the background, again after a failure.
    move_id
        Id of the migration.
    now
        Returns the present in seconds.
    """

    def __init__(
        self,
        primary: GraphBackend,
        open_secondary: Callable[[], GraphBackend],
        move_id: str,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._primary = primary
        self._open = open_secondary
        self._secondary: GraphBackend | None = None
        self._move_id = move_id
        self._now = now
        self._lock = threading.Lock()
        self._pending: dict[Scope, list[Batch]] = {}
        self._since: dict[Scope, float] = {}
        self._late: dict[Scope, dict[tuple[int, str], float]] = {}
        self._failed: dict[Scope, _FailedRepair] = {}
        self._check_at = 0.0
        self._reads: deque[Read] = deque(maxlen=_READS)
        self._large: set[Scope] = set()
        self._is_scrubbed = True
        self._job = _GatheringJob("graphmem-migrate", self.work)

    @property
    def error(self) -> Exception | None:
        """The error of the last run, such as that the secondary is away, or of a repair; None if all succeeded."""
        return self._job.error or next((failed.error for failed in self._failed.values()), None)

    def put(self, batches: Iterable[Batch]) -> None:
        """Have changes transferred; returns at once."""
        with self._lock:
            for batch in batches:
                held = self._pending.setdefault(batch.scope, [])
                held.append(batch)
                if len(held) > _PENDING:
                    self._pending[batch.scope] = _joined(held)
        self._job.wake()

    def compare(self, read: Read) -> None:
        """Have a read of the primary repeated on the secondary; returns at once."""
        self._reads.append(read)
        self._job.wake()

    def hurry(self) -> None:
        """Transfer changes at once from now on: writers wait until another store has become the primary."""
        self._job.hurry()

    def stop(self) -> None:
        """Transfer nothing more: another store has become the primary."""
        self._job.stop(0.0)

    def close(self, seconds: float) -> None:
        """Transfer what waits, for at most some seconds, and close the secondary."""
        deadline = time.monotonic() + seconds
        self.hurry()
        while self._is_behind() and self.error is None and time.monotonic() < deadline:
            time.sleep(0.01)
        self._job.stop(max(0.0, deadline - time.monotonic()))
        if self._secondary is not None:
            self._secondary.close()

    def _is_behind(self) -> bool:
        return bool(self._pending or self._reads) or not self._is_scrubbed

    # In the background --------------------------------------------------------------------------

    def work(self) -> float | None:
        """Transfer what waits; return the seconds until the next run, None if nothing waits.

        Raises
        ------
        BackendUnavailable
            If the secondary can't be reached or written; what waits is kept.
        """
        secondary = self._adopted()
        if secondary is None:
            self._pending.clear()
            self._late.clear()
            self._failed.clear()
            self._reads.clear()
            self._is_scrubbed = True
            return None
        try:
            self._retry_repairs(secondary)
            with self._lock:
                scopes = tuple(self._pending)
            results = {self._follow(secondary, scope) for scope in scopes}
            self._repair_late(secondary)
            while self._reads:
                compare(self._primary, secondary, self._reads.popleft())
            self._is_scrubbed = scrub(secondary)
        except StoreMoved:
            secondary.adopt(secondary.read_move())
            return _POLL_COPY
        if self._pending or not self._is_scrubbed:
            return 0.0 if "done" in results else _POLL_COPY
        return _POLL_LATE if self._late or self._failed else None

    def _adopted(self) -> GraphBackend | None:
        """Return the secondary under its present mark; None if it no longer follows the primary.

        The process may not have noticed yet that the other store has become the primary. Its mark is read first: if it
        changes after that, the secondary refuses writes under the one that was adopted.
        """
        if self._secondary is None:
            self._secondary = self._open()
        move = self._secondary.read_move()
        self._secondary.adopt(move)
        return self._secondary if is_followed(self._primary.read_move(), move, self._move_id) else None

    def _follow(self, secondary: GraphBackend, scope: Scope) -> _Followed:
        """Transfer the changes of a scope; repair it if they have been missing for too long."""
        with self._lock:
            held = sorted(self._pending[scope], key=lambda batch: batch.number)
        token = token_of(secondary, scope, self._move_id)
        if not is_usable(token):
            return "done" if not token and self._copied(secondary, scope, held) else "waits for a copy"
        needs_repair = held[0].changed.all_rows
        if not needs_repair:
            done = self._transferred(secondary, scope, _first(held))
            if done:
                self._since.pop(scope, None)
                self._late.setdefault(scope, {})
                self._drop(scope, done)
                return "done"
            needs_repair = done is None
        is_done = is_equal(self._primary, secondary, scope)  # also if these are older than a removal of the scope
        since = self._since.setdefault(scope, self._now())
        if not is_done and not needs_repair and self._now() - since < _PATIENCE:
            return "waits for others"
        if is_done or self._repair(secondary, scope):
            self._drop(scope, held)  # what was committed before the repair is part of it
        self._since.pop(scope)
        return "done"

    def _transferred(self, secondary: GraphBackend, scope: Scope, held: Sequence[Batch]) -> Sequence[Batch] | None:
        """Transfer changes; return those that the secondary has now, None if the scope has to be repaired.

        If some depend on changes of another process that come later, only the older ones are transferred.
        """
        while held:
            try:
                return secondary.atomic(partial(_transfer, self._primary, secondary, scope, held, self._move_id))
            except (Conflict, InvalidInput):
                held = held[: len(held) // 2]
        return ()

    def _repair_late(self, secondary: GraphBackend) -> None:
        """Repair the scopes written by this process in which those of another one don't arrive: it was killed."""
        if not self._late or self._now() < self._check_at:
            return
        self._check_at = self._now() + _POLL_LATE
        for scope, before in tuple(self._late.items()):
            slots = late_slots(self._primary, secondary, scope)
            if not slots:
                del self._late[scope]  # equal, or left to a copy
                continue
            since = {slot: before.get(slot, self._now()) for slot in slots}
            if self._now() - min(since.values()) >= _PATIENCE:
                self._repair(secondary, scope)
            self._late[scope] = since

    def _copied(self, secondary: GraphBackend, scope: Scope, held: Sequence[Batch]) -> bool:
        """Copy a scope that the secondary doesn't have, if it is small; return whether it was copied."""
        if not held[0].version.is_first or scope in self._large:
            return False
        counts = self._primary.stats(scope)
        if counts.episodes + counts.entities > _SMALL:
            self._large.add(scope)  # left to the command
            return False
        if copied := self._repair(secondary, scope):
            self._drop(scope, held)
        return copied

    def _repair(self, secondary: GraphBackend, scope: Scope) -> bool:
        """Repair a scope; return whether it was repaired. One that fails is repeated, as all others wait for it."""
        try:
            done = repair(self._primary, secondary, scope)
        except Exception as error:
            self._failed[scope] = _FailedRepair(self._now(), error)
            if isinstance(error, (Conflict, InvalidInput)):
                return False  # the other scopes go on
            raise
        self._failed.pop(scope, None)
        return done

    def _retry_repairs(self, secondary: GraphBackend) -> None:
        """Repeat the repairs that failed some time ago, unless another process repairs the scope."""
        for scope, failed in tuple(self._failed.items()):
            token = token_of(secondary, scope)
            if is_usable(token) or failed.token not in ("", token):
                del self._failed[scope]
            elif self._now() - failed.at < _PATIENCE:
                self._failed[scope] = replace(failed, token=token)
            else:
                self._repair(secondary, scope)

    def _drop(self, scope: Scope, done: Sequence[Batch]) -> None:
        """Drop batches that the secondary has."""
        self._is_scrubbed = False  # perhaps
        numbers = {batch.number for batch in done}
        with self._lock:
            left = [batch for batch in self._pending[scope] if batch.number not in numbers]
            if left:
                self._pending[scope] = left
            else:
                del self._pending[scope]


def _joined(held: Sequence[Batch]) -> list[Batch]:
    """Join batches in pairs."""
    ordered = sorted(held, key=lambda batch: batch.number)
    pairs = zip(ordered[::2], ordered[1::2], strict=False)
    return [batch for one, other in pairs for batch in one.joined(other)] + ordered[len(ordered) // 2 * 2 :]


def _first(held: Sequence[Batch]) -> Sequence[Batch]:
    """Return the oldest changes, as many as are transferred together."""
    rows = accumulate(len(batch.changed.keys) for batch in held)
    fitting = takewhile(lambda pair: pair[1] <= _AT_ONCE and not pair[0].changed.all_rows, zip(held, rows, strict=True))
    return held[: max(1, sum(1 for _ in fitting))]


def _transfer(
    primary: GraphBackend, secondary: GraphBackend, scope: Scope, held: Sequence[Batch], move_id: str
) -> Sequence[Batch] | None:
    """Transfer the changes that can follow the token of a scope; return as `Follower._transferred`."""
    token = token_of(secondary, scope, move_id)
    if not is_usable(token):
        return ()
    known, following = place_versions(token, [batch.version for batch in held])
    if following:
        ids = {version.id for version in following}
        changed = ChangedRows.union(batch.changed for batch in held if batch.version.id in ids)
        if not transfer(primary, secondary, scope, changed, advanced(token, following)):
            return None
    done = {version.id for version in (*known, *following)}
    return [batch for batch in held if batch.version.id in done]
