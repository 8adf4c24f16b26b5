"""The backend that a memory uses while its store is migrated, and how it follows the state of the migration."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from types import MethodType
from typing import Any, Literal, TypeVar, cast

from graphmem.background import BackgroundJob
from graphmem.errors import Conflict, InvalidInput, StoreMoved
from graphmem.migrate.copy import repair
from graphmem.migrate.states import (
    Open,
    Route,
    Routes,
    is_equal,
    is_usable,
    next_token,
    open_existing,
    put_token,
    scrub,
    token_of,
)
from graphmem.migrate.verify import Read, compare
from graphmem.models import Changes, Episode, Move, Scope
from graphmem.protocols import GraphBackend

_PENDING = 1000  # transactions of a scope that are kept; the oldest are dropped, and the scope is repaired
_AT_ONCE = 50  # transactions of a scope in one of the secondary
_SMALL = 5000  # episodes and entities of a scope that a process copies by itself
_PATIENCE = 15.0  # seconds to wait for the changes of another process that come before
_POLL_COPY = 0.25  # polling interval of a copy in seconds
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
            return _POLL_COPY
        if is_interrupted:
            return 0.0
        return _POLL_COPY if self._pending or not self._is_scrubbed else None

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


# Backend ------------------------------------------------------------------------------------------


T = TypeVar("T")

_POLL, _POLL_DURING_MOVE = 30.0, 1.0  # polling interval of readers in seconds
_WAIT, _WAIT_STEP = 30.0, 0.05  # seconds that callers wait for a cutover
_CLOSING = 5.0  # seconds to apply what waits when the store is closed
_METHODS = frozenset(
    name for name in dir(GraphBackend) if not name.startswith("_") and callable(getattr(GraphBackend, name))
)
_DERIVED_WRITES = frozenset(("write_unless_erased",))
_FENCED = frozenset(("claim_episodes", "release_claims", "snapshot"))
_COMPARED = frozenset(
    "resolve_names find_entities find_aliases find_edges find_episodes find_mentions find_communities find_memberships "
    "find_recalls find_merges expand".split()
)
"""Reads whose results are the same in every store; scores, positions and claims aren't."""


def following_backend(store: GraphBackend, open_store: Open, shadow_share: float = 0.0) -> GraphBackend:
    """Return a store that follows its migration to another one.

    Parameters
    ----------
    store
        The open store.
    open_store
        Opens another store by its URL, with the credentials of this process.
    shadow_share
        Share of the reads that are repeated on the secondary, in the background, and compared.

    Raises
    ------
    StoreMoved
        If the store was left, or is the target of a migration that isn't cut over.
    """
    return cast("GraphBackend", DualWriteBackend(store, open_store, shadow_share))


class _Local(threading.local):
    route: Route | None = None
    """The route of the transaction of this thread."""
    calls: list[tuple[Scope, Call]] | None = None
    """The changes of this transaction."""
    is_writing: bool = False
    """Whether the thread is counted as a writer."""


class DualWriteBackend:
    """A primary with a secondary that gets the same changes; outside of a migration it only passes calls on.

    Each transaction of the primary also stores a new token in the scopes that it changes (`graphmem.migrate.states`).
    The changes then go to the secondary in the background (`Follower`): callers neither wait for it nor see its errors.
    A write that the store refuses because of another mark is repeated on the store that has taken over.
    See `following_backend` for the parameters.
    """

    def __init__(self, store: GraphBackend, open_store: Open, shadow_share: float = 0.0) -> None:
        self._routes = Routes(store, open_store)
        self._open = open_store
        self._share = shadow_share
        self._lock = threading.Lock()
        self._gate = threading.Condition()
        self._writers = 0
        self._local = _Local()
        self._follower: Follower | None = None
        self._old: list[Follower] = []
        self._poll_at = 0.0
        try:
            self._take(self._settled(self._routes.first))
        except BaseException:
            self._routes.close()
            raise

    # The route ----------------------------------------------------------------------------------

    def _take(self, route: Route, *, wait: bool = True) -> None:
        """Use a route once no writer uses the previous one, which would write to the old store under the new mark."""
        with self._gate:
            if self._gate.wait_for(lambda: self._writers == 0, None if wait else 0.0):
                self._use(route)

    def _use(self, route: Route) -> None:
        route.primary.adopt(route.move)
        if self._follower is not None:
            self._follower.stop()
            self._old.append(self._follower)
            self._follower = None
        if (url := route.secondary) is not None:
            move_id = route.move.id if route.move is not None else ""
            self._follower = Follower(route.primary, lambda: open_existing(self._open, url), move_id)
        self._route = route
        self._poll_at = time.monotonic() + _poll(route)

    def _settled(self, find: Callable[[], Route | None]) -> Route:
        """Return the route that `find` returns, once it returns one."""
        deadline = time.monotonic() + _WAIT
        while (route := find()) is None:
            if time.monotonic() >= deadline:
                raise StoreMoved(
                    f"the migration has been switching stores for {_WAIT:.0f} s without completing; run its command "
                    "again, for example graphmem migrate cutover"
                )
            time.sleep(_WAIT_STEP)
        return route

    def _changed(self, route: Route) -> None:
        """Follow the mark after a write was refused under a route."""
        with self._lock:
            if self._route is route:
                self._take(self._settled(lambda: self._routes.next(route)))

    def _current(self) -> Route:
        """Return the route of a read; check the mark at intervals."""
        if self._local.route is not None:
            return self._local.route
        if self._local.is_writing:
            return self._route
        if time.monotonic() >= self._poll_at and self._lock.acquire(blocking=False):
            try:
                route = self._route
                self._poll_at = time.monotonic() + _poll(route)
                if route.primary.read_move() != route.move and (found := self._routes.next(route)) is not None:
                    self._take(found, wait=False)
            finally:
                self._lock.release()
        return self._route

    def _fenced(self, work: Callable[[Route], T]) -> T:
        """Run a write; if the store has moved, repeat it on the new one."""
        if (joined := self._local.route) is not None:
            return work(joined)
        if self._local.is_writing:
            return work(self._route)
        while True:
            with self._gate:
                route = self._route
                self._writers += 1
            self._local.is_writing = True
            try:
                return work(route)
            except StoreMoved:
                pass
            finally:
                self._local.is_writing = False
                with self._gate:
                    self._writers -= 1
                    self._gate.notify_all()
            self._changed(route)

    # Reads --------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            return getattr(self._current().primary, name)  # properties may change
        if name in _DERIVED_WRITES:
            made: Callable[..., Any] = MethodType(getattr(GraphBackend, name), self)
        elif name in _FENCED:
            made = lambda *args, **kwargs: self._fenced(  # noqa: E731
                lambda route: getattr(route.primary, name)(*args, **kwargs)
            )
        elif name in _COMPARED and self._share > 0:
            made = lambda *args, **kwargs: self._compared(name, args, kwargs)  # noqa: E731
        else:
            made = lambda *args, **kwargs: getattr(self._current().primary, name)(*args, **kwargs)  # noqa: E731
        self.__dict__[name] = made
        return made

    def _compared(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = getattr(self._current().primary, name)(*args, **kwargs)
        follower = self._follower
        if follower is not None and self._local.route is None and random.random() < self._share:
            follower.compare(Read(name, args, kwargs, result))
        return result

    # Writes -------------------------------------------------------------------------------------

    def atomic(self, work: Callable[[], T]) -> T:
        """Run `work` in one transaction of the primary, with the tokens of the scopes that it changes."""
        if (joined := self._local.route) is not None:
            return self._nested(joined, work)
        return self._fenced(lambda route: self._transaction(route, work))

    def _nested(self, route: Route, work: Callable[[], T]) -> T:
        calls = self._local.calls
        before = 0 if calls is None else len(calls)
        try:
            return route.primary.atomic(work)
        except BaseException:
            if calls is not None:
                del calls[before:]
            raise

    def _transaction(self, route: Route, work: Callable[[], T]) -> T:
        follower = self._follower if self._route is route else None
        batches: list[Batch] = []

        def run() -> T:
            calls: list[tuple[Scope, Call]] = []
            self._local.route, self._local.calls = route, calls
            try:
                result = work()
                if route.secondary is not None and route.move is not None:
                    batches[:] = _with_tokens(route.primary, route.move.id, calls)
                return result
            finally:
                self._local.route = self._local.calls = None

        result = route.primary.atomic(run)
        if follower is not None and batches:
            follower.put(batches)
        return result

    def _write(self, scopes: Sequence[Scope], call: Call, of_scope: Callable[[Scope], Call] | None = None) -> Any:
        """Call a writing method of the primary, and record the call for each scope."""
        route, (name, args, kwargs) = self._local.route, call
        if route is None:
            if self._route.secondary is not None:
                return self.atomic(lambda: self._write(scopes, call, of_scope))
            return self._fenced(
                lambda route: (
                    getattr(route.primary, name)(*args, **kwargs)
                    if route.secondary is None
                    else self._transaction(route, lambda: self._write(scopes, call, of_scope))
                )
            )
        result = getattr(route.primary, name)(*args, **kwargs)
        if self._local.calls is not None:
            self._local.calls += [(scope, call if of_scope is None else of_scope(scope)) for scope in scopes]
        return result

    def write(self, scope: Scope, changes: Changes) -> None:
        """Apply `changes` to the primary, and later to the secondary."""
        self._write([scope], ("write", (scope, changes), {}))

    def add_episodes(self, scope: Scope, episodes: Sequence[Episode]) -> list[tuple[str, bool]]:
        """Store episodes."""
        return self._write([scope], ("add_episodes", (scope, tuple(episodes)), {}))

    def record_retrievals(self, scopes: Sequence[Scope], edge_ids: Sequence[str], at: Any) -> None:
        """Count retrievals."""
        ids = tuple(edge_ids)
        self._write(
            scopes,
            ("record_retrievals", (scopes, ids, at), {}),
            lambda scope: ("record_retrievals", ([scope], ids, at), {}),
        )

    def decay_retrievals(self, scope: Scope, **options: Any) -> tuple[int, str]:
        """Decay the retrieval counts of a page of facts."""
        return self._write([scope], ("decay_retrievals", (scope,), options))

    def reset_index(self, scope: Scope) -> int:
        """Remove the index of a scope."""
        return self._write([scope], ("reset_index", (scope,), {}))

    def clear(self, scope: Scope) -> None:
        """Remove all rows of a scope.

        A store may need several transactions, and removes the token too. New tokens before and after the removal tell
        the secondary that the scope has to be repaired.
        """
        self._touch(scope)
        self._fenced(lambda route: route.primary.clear(scope))
        self._touch(scope)

    def _touch(self, scope: Scope) -> None:
        if self._route.secondary is not None:
            self.atomic(lambda: self._write([scope], ("write", (scope, Changes()), {})))

    def scrub(self) -> bool:
        """Overwrite the remains of removed rows; the secondary is scrubbed once the removal has reached it."""
        return self._current().primary.scrub()

    def diagnose(self) -> list[tuple[str, bool, str]]:
        """Return the checks of the primary, and whether the secondary gets the changes of this process."""
        checks = self._current().primary.diagnose()
        if (follower := self._follower) is not None:
            checks.append(("migration", follower.error is None, str(follower.error or self._route.secondary)))
        return checks

    def close(self) -> None:
        """Apply what waits for the secondary, for a few seconds, and close all stores."""
        for follower in self._old:
            follower.close(0.0)
        if self._follower is not None:
            self._follower.close(_CLOSING)
        self._old, self._follower = [], None
        self._routes.close()


def _poll(route: Route) -> float:
    return _POLL if route.secondary is None else _POLL_DURING_MOVE


def _with_tokens(primary: GraphBackend, move_id: str, calls: Sequence[tuple[Scope, Call]]) -> list[Batch]:
    """Store new tokens in the scopes of the calls, and return their changes."""
    of_scope: dict[Scope, list[Call]] = {}
    for scope, call in calls:
        of_scope.setdefault(scope, []).append(call)
    batches: list[Batch] = []
    for scope, own in of_scope.items():
        before, token = next_token(primary, scope, move_id)
        batches.append(Batch(scope, before, token, tuple(own)))
    return batches
