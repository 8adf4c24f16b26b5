"""The secondary of a process: gets the changes of the primary in the background, in their order."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from graphmem.background import BackgroundJob
from graphmem.errors import Conflict, InvalidInput, StoreMoved
from graphmem.migrate.copy import repair
from graphmem.migrate.states import is_equal, is_usable, put_token, scrub, token_of
from graphmem.migrate.verify import Read, compare
from graphmem.models import Move, Scope
from graphmem.protocols import GraphBackend

_PENDING = 1000  # transactions of a scope that are kept; the oldest are dropped, and the scope is repaired
_AT_ONCE = 50  # transactions of a scope in one of the secondary
_SMALL = 5000  # episodes and entities of a scope that a process copies by itself
_PATIENCE = 15.0  # seconds to wait for the changes of another process that come before
_POLL = 0.25  # polling interval of a copy in seconds
_TURN, _LONGEST_TURN = 0.005, 0.03  # polling interval in seconds while another process applies
_GATHER = 0.05  # seconds of changes that are applied together
_ROUND = 1.0  # seconds after which other work than changes has its turn
_READS = 100  # shadow reads that wait

_Followed = Literal["done", "waits for others", "waits for a copy"]
Call = tuple[str, tuple[Any, ...], dict[str, Any]]
"""Name and arguments of a writing method."""

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Batch:
    """The changes of one transaction in one scope.

    Attributes
    ----------
    scope
        The scope.
    before, token
        Its token before and after the transaction.
    calls
        The calls that changed it, in order.
    number
        Ascending in the order of the transactions of the scope in this process, if created in the transaction:
        threads may put their batches in another order.
    """

    scope: Scope
    before: str
    token: str
    calls: Sequence[Call]
    number: int = field(default_factory=lambda: next(_numbers))


class _PromptJob(BackgroundJob):
    """A job that doesn't give way to callers: processes that write in turn wait for each other's changes."""

    def _wait_for_quiet(self, duration: float) -> None:
        del duration
        self._stop.wait(_GATHER)


class Follower:
    """Applies the changes of this process to the secondary, and repairs what it finds to be missing there.

    The tokens show which changes weren't applied, so the queue needn't be durable: a full queue, a failure or the end
    of the process leaves a difference that a repair of the scope removes (`graphmem.migrate.copy.repair`).

    Parameters
    ----------
    primary
        The store with the changes.
    open_secondary
        Opens the other store; called in the background, again after a failure.
    move_id
        Id of the migration.
    now, sleep
        Return the present in seconds, and wait, for changes of other processes that come first.
    """

    def __init__(
        self,
        primary: GraphBackend,
        open_secondary: Callable[[], GraphBackend],
        move_id: str,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._primary = primary
        self._open = open_secondary
        self._secondary: GraphBackend | None = None
        self._move_id = move_id
        self._now = now
        self._sleep = sleep
        self._lock = threading.Lock()
        self._pending: dict[Scope, deque[Batch]] = {}
        self._since: dict[Scope, float] = {}
        self._reads: deque[Read] = deque(maxlen=_READS)
        self._large: set[Scope] = set()
        self._is_scrubbed = True
        self._job = _PromptJob("graphmem-migrate", self.work)

    @property
    def error(self) -> Exception | None:
        """The error of the last run, such as that the secondary is away; None if it succeeded."""
        return self._job.error

    def put(self, batches: Iterable[Batch]) -> None:
        """Have changes applied; returns at once."""
        with self._lock:
            for batch in batches:
                self._pending.setdefault(batch.scope, deque(maxlen=_PENDING)).append(batch)
        self._job.wake()

    def compare(self, read: Read) -> None:
        """Have a read of the primary repeated on the secondary; returns at once."""
        self._reads.append(read)
        self._job.wake()

    def stop(self) -> None:
        """Apply nothing more: another store has become the primary."""
        self._job.stop(0.0)

    def close(self, seconds: float) -> None:
        """Apply what waits, for at most some seconds, and close the secondary."""
        deadline = time.monotonic() + seconds
        while self._is_behind() and self.error is None and time.monotonic() < deadline:
            time.sleep(0.01)
        self._job.stop(max(0.0, deadline - time.monotonic()))
        if self._secondary is not None:
            self._secondary.close()

    def _is_behind(self) -> bool:
        return bool(self._pending or self._reads) or not self._is_scrubbed

    # In the background --------------------------------------------------------------------------

    def work(self) -> float | None:
        """Apply what waits; return the seconds until the next run, None if nothing waits.

        Raises
        ------
        BackendUnavailable
            If the secondary can't be reached or written; what waits is kept.
        """
        secondary = self._adopted()
        if secondary is None:
            self._pending.clear()
            self._reads.clear()
            self._is_scrubbed = True
            return None
        try:
            is_interrupted = self._follow_all(secondary)
            while self._reads:
                compare(self._primary, secondary, self._reads.popleft())
            self._is_scrubbed = scrub(secondary)
        except StoreMoved:
            secondary.adopt(secondary.read_move())
            return _POLL
        if is_interrupted:
            return 0.0
        return _POLL if self._pending or not self._is_scrubbed else None

    def _adopted(self) -> GraphBackend | None:
        """Return the secondary under its present mark; None if it has left the migration."""
        if self._secondary is None:
            self._secondary = self._open()
        move: Move | None = self._secondary.read_move()
        self._secondary.adopt(move)
        follows = move is not None and move.id == self._move_id and move.state not in ("moved", "abandoned")
        return self._secondary if follows else None

    def _follow_all(self, secondary: GraphBackend) -> bool:
        """Apply changes until none wait, or they wait for a copy; return whether the time of a round was up before.

        Processes that write to a scope in turn have to apply their changes in turn.
        """
        until, pause = self._now() + _ROUND, _TURN
        while not self._job.stopping and self._now() < until:
            with self._lock:
                scopes = tuple(self._pending)
            results = {self._follow(secondary, scope) for scope in scopes}
            if results <= {"waits for a copy"}:
                return False
            if "done" in results:
                pause = _TURN
            else:
                self._sleep(pause)
                pause = min(2 * pause, _LONGEST_TURN)
        return True

    def _follow(self, secondary: GraphBackend, scope: Scope) -> _Followed:
        """Apply the changes of a scope that come next; repair it if they have been missing for too long."""
        with self._lock:
            held = sorted(self._pending[scope], key=lambda batch: batch.number)
        token = token_of(secondary, scope, self._move_id)
        if not is_usable(token):
            return "done" if not token and self._copied(secondary, scope, held) else "waits for a copy"
        if any(token in (batch.before, batch.token) for batch in held):
            try:
                done = secondary.atomic(lambda: _apply(secondary, scope, held, self._move_id))
            except (Conflict, InvalidInput):
                done = None
            if done is not None:
                self._since.pop(scope, None)
                self._drop(scope, done)
                return "done"
        since = self._since.setdefault(scope, self._now())
        if self._now() - since < _PATIENCE:
            return "waits for others"
        if is_equal(self._primary, secondary, scope) or repair(self._primary, secondary, scope):
            self._drop(scope, held[-1])  # what was committed before the repair is part of it
        self._since.pop(scope)
        return "done"

    def _copied(self, secondary: GraphBackend, scope: Scope, held: Sequence[Batch]) -> bool:
        """Copy a scope that the secondary doesn't have, if it is small; return whether it was copied."""
        if held[0].before or scope in self._large:
            return False
        counts = self._primary.stats(scope)
        if counts.episodes + counts.entities > _SMALL:
            self._large.add(scope)  # left to the command
            return False
        if copied := repair(self._primary, secondary, scope):
            self._drop(scope, held[-1])
        return copied

    def _drop(self, scope: Scope, last: Batch) -> None:
        """Drop a batch that the secondary has, and those before it."""
        self._is_scrubbed = False  # perhaps
        with self._lock:
            left = [batch for batch in self._pending[scope] if batch.number > last.number]
            if left:
                self._pending[scope] = deque(left, maxlen=_PENDING)
            else:
                del self._pending[scope]


def _apply(secondary: GraphBackend, scope: Scope, held: Sequence[Batch], move_id: str) -> Batch | None:
    """Apply the changes that follow the token of a scope; return the last that it has now, None if it isn't known."""
    token = token_of(secondary, scope, move_id)
    if not is_usable(token):  # a scope without a copy has none, and so has one that was never written
        return None
    begin = next((at for at, batch in enumerate(held) if batch.before == token), None)
    if begin is None:
        return next((batch for batch in held if batch.token == token), None)
    done, erasure = held[begin], secondary.erasure_token(scope)
    for batch in held[begin : begin + _AT_ONCE]:
        if batch.before != token:
            break
        for name, args, kwargs in batch.calls:
            getattr(secondary, name)(*args, **kwargs)
        token, done = batch.token, batch
    put_token(secondary, scope, token, erased=secondary.erasure_token(scope) != erasure)
    return done
