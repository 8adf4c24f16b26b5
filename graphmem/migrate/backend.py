"""The backend that a memory uses while its store is migrated, and how it follows the state of the migration."""

from __future__ import annotations

import random
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import count
from types import MethodType
from typing import Any, TypeVar, cast

from graphmem.errors import StoreMoved
from graphmem.migrate.follower import Batch, Follower
from graphmem.migrate.states import Open, Route, Routes, open_existing
from graphmem.migrate.tokens import next_version
from graphmem.migrate.transfer import ChangedRows, rows_of
from graphmem.migrate.verify import Read
from graphmem.models import Changes, Episode, Scope
from graphmem.protocols import GraphBackend

T = TypeVar("T")

_numbers = count(1)
_ALL_ROWS = ChangedRows(all_rows=True)
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
    changes: list[tuple[Scope, ChangedRows]] | None = None
    """The changes of this transaction."""
    is_writing: bool = False
    """Whether the thread is counted as a writer."""


class DualWriteBackend:
    """A primary with a secondary that gets the same changes; outside of a migration it only passes calls on.

    Each transaction of the primary also stores a new token in the scopes that it changes (`graphmem.migrate.tokens`).
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
        self._process = secrets.token_hex(4)
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
        self._hurry()
        with self._lock:
            if self._route is route:
                self._take(self._settled(lambda: self._routes.next(route)))

    def _hurry(self) -> None:
        if (follower := self._follower) is not None:
            follower.hurry()

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
                if route.primary.read_move() != route.move:
                    self._hurry()
                    if (found := self._routes.next(route)) is not None:
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
        changes = self._local.changes
        before = 0 if changes is None else len(changes)
        try:
            return route.primary.atomic(work)
        except BaseException:
            if changes is not None:
                del changes[before:]
            raise

    def _transaction(self, route: Route, work: Callable[[], T]) -> T:
        follower = self._follower if self._route is route else None
        batches: list[Batch] = []

        def run() -> T:
            changes: list[tuple[Scope, ChangedRows]] = []
            self._local.route, self._local.changes = route, changes
            try:
                result = work()
                if route.secondary is not None and route.move is not None:
                    batches[:] = self._versions(route.primary, route.move.id, changes)
                return result
            finally:
                self._local.route = self._local.changes = None

        result = route.primary.atomic(run)
        if follower is not None and batches:
            follower.put(batches)
        return result

    def _versions(
        self, primary: GraphBackend, move_id: str, changes: Sequence[tuple[Scope, ChangedRows]]
    ) -> list[Batch]:
        """Store new tokens in the scopes that a transaction changes, and return its changes."""
        of_scope: dict[Scope, list[ChangedRows]] = {}
        for scope, changed in changes:
            of_scope.setdefault(scope, []).append(changed)
        return [
            Batch(
                scope,
                next_version(primary, scope, move_id, self._process, next(_numbers)),
                ChangedRows.union(parts),
            )
            for scope, parts in of_scope.items()
        ]

    def _write(
        self, scopes: Sequence[Scope], write: Callable[[GraphBackend], T], changed: Callable[[T], ChangedRows]
    ) -> T:
        """Write to the primary, and record which rows of the scopes that changes, by its result."""
        route = self._local.route
        if route is None:
            if self._route.secondary is not None:
                return self.atomic(lambda: self._write(scopes, write, changed))
            return self._fenced(
                lambda route: (
                    write(route.primary)
                    if route.secondary is None
                    else self._transaction(route, lambda: self._write(scopes, write, changed))
                )
            )
        result = write(route.primary)
        if self._local.changes is not None and route.secondary is not None:
            rows = changed(result)
            self._local.changes += [(scope, rows) for scope in scopes]
        return result

    def write(self, scope: Scope, changes: Changes) -> None:
        """Apply `changes` to the primary, and later to the secondary."""
        self._write([scope], lambda store: store.write(scope, changes), lambda _: rows_of(changes))

    def add_episodes(self, scope: Scope, episodes: Sequence[Episode]) -> list[tuple[str, bool]]:
        """Store episodes."""
        return self._write(
            [scope],
            lambda store: store.add_episodes(scope, episodes),
            lambda stored: ChangedRows(frozenset(("episode", episode_id) for episode_id, created in stored if created)),
        )

    def record_retrievals(self, scopes: Sequence[Scope], edge_ids: Sequence[str], at: datetime) -> None:
        """Count retrievals."""

        def changed(_: None) -> ChangedRows:
            # the ends that were counted; a fact may have others when the change is transferred
            ends = {
                end for edge in self.get_edges(scopes, edge_ids).values() for end in (edge.source_id, edge.target_id)
            }
            return ChangedRows(frozenset((*(("edge", i) for i in edge_ids), *(("entity", i) for i in ends))))

        self._write(scopes, lambda store: store.record_retrievals(scopes, edge_ids, at), changed)

    def decay_retrievals(self, scope: Scope, **options: Any) -> tuple[int, str]:
        """Decay the retrieval counts of a page of facts."""
        after: str = options.get("after", "")
        return self._write(
            [scope],
            lambda store: store.decay_retrievals(scope, **options),
            lambda page: ChangedRows(frozenset([("decayed", after, page[1])])),
        )

    def reset_index(self, scope: Scope) -> int:
        """Remove the index of a scope."""
        return self._write([scope], lambda store: store.reset_index(scope), lambda _: _ALL_ROWS)

    def clear(self, scope: Scope) -> None:
        """Remove all rows of a scope.

        A store may need several transactions, and removes the token too. New tokens before and after the removal tell
        other processes that the scope has to be repaired, should this one be killed.
        """
        self._touch(scope)
        self._fenced(lambda route: route.primary.clear(scope))
        self._touch(scope)

    def _touch(self, scope: Scope) -> None:
        if self._route.secondary is not None:
            self.atomic(lambda: self._write([scope], lambda _: None, lambda _: _ALL_ROWS))

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
        """Transfer what waits to the secondary, for a few seconds, and close all stores."""
        for follower in self._old:
            follower.close(0.0)
        if self._follower is not None:
            self._follower.close(_CLOSING)
        self._old, self._follower = [], None
        self._routes.close()


def _poll(route: Route) -> float:
    return _POLL if route.secondary is None else _POLL_DURING_MOVE
