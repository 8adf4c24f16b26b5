"""The commands of a migration, over its two stores."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from graphmem.errors import Conflict, InvalidInput
from graphmem.migrate.copy import OnRows, Rate, repair
from graphmem.migrate.states import (
    DUAL,
    GOALS,
    PHASES,
    SOURCE_SERVES,
    SOURCE_STATES,
    STEPS,
    Command,
    Open,
    Phase,
    Step,
    open_existing,
    plain_url,
)
from graphmem.migrate.tokens import JOB, SHADOW, is_equal, is_usable, scrub, slots_of, token_of
from graphmem.migrate.verify import differences_of
from graphmem.models import Model, Move, Scope, new_id, utc_now
from graphmem.protocols import GraphBackend

_TRIES = 100
_CATCHING_UP, _CATCHING_UP_LIMIT = 3.0, 8.0  # seconds for a process to transfer some, and all, without writers
_LAG, _PROGRESS, _LAG_STEP = 10.0, 3.0, 0.05  # seconds in which the secondary has to get a change, and some change


class MigrationStatus(Model):
    """State of a migration.

    Attributes
    ----------
    phase
        Its phase; see docs/how-to/migrate.md.
    source, target
        The stores, without passwords.
    primary
        The one that is read and written.
    scopes
        Number of scopes.
    behind
        Scopes in which the secondary lacks changes, at this moment.
    differences
        Number of differing shadow reads by method.
    """

    phase: Phase
    source: str
    target: str
    primary: str
    scopes: int
    behind: tuple[str, ...]
    differences: dict[str, int]


class Migration:
    """A migration from one open store to another; `close` closes both.

    Parameters
    ----------
    source, target
        The stores.
    source_url, target_url
        Their URLs; passwords are left out.
    sleep
        Waits for a number of seconds.
    """

    def __init__(
        self,
        source: GraphBackend,
        target: GraphBackend,
        source_url: str,
        target_url: str,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.source, self.target = source, target
        self.source_url, self.target_url = plain_url(source_url), plain_url(target_url)
        self._sleep = sleep

    @classmethod
    def open(cls, url: str, target_url: str | None, open_store: Open) -> Migration:
        """Open the stores of a migration: a new one to `target_url`, or that of the mark in the store of `url`.

        Raises
        ------
        InvalidInput
            If no target is given and the store is in no migration, or both URLs name one store.
        BackendUnavailable
            If a store can't be opened.
        """
        if target_url is not None and plain_url(url) == plain_url(target_url):
            raise _same_store(url, target_url)
        store = open_store(url)
        try:
            mark = store.read_move()
            move = _under_way(mark)
            if target_url is not None and (move is None or move.state in SOURCE_STATES):
                target = open_store(target_url)
                if target.identity == store.identity:
                    target.close()
                    raise _same_store(url, target_url)
                return cls(store, target, url, target_url)
            if mark is not None and move is None:
                raise InvalidInput(
                    f"migrate: {_told(mark)} has ended; for its status or cleanup --erase, use --store {mark.source}"
                )
            if move is None:
                raise InvalidInput(
                    f"migrate: {plain_url(url)} is in no migration; start one with graphmem migrate copy"
                )
            if target_url is not None:
                raise Conflict(f"migrate: {_told(move)} isn't cleaned up; run graphmem migrate cleanup first")
            if move.state in SOURCE_STATES:
                return cls(store, open_existing(open_store, move.target), move.source, move.target)
            return cls(open_existing(open_store, move.source), store, move.source, move.target)
        except BaseException:
            store.close()
            raise

    def close(self) -> None:
        """Close both stores."""
        self.source.close()
        self.target.close()

    # Phases and steps ---------------------------------------------------------------------------

    @property
    def phase(self) -> Phase:
        """The phase, by the marks in the stores.

        Raises
        ------
        Conflict
            If one of the stores is in another migration.
        """
        return self._read()[0]

    def _read(self) -> tuple[Phase, Move | None, Move | None]:
        source, target = self.source.read_move(), self.target.read_move()
        begun = target is not None and self._is_ours(target) and target.state == "receiving"
        if target and begun and (other := _under_way(source)) is not None and not self._is_ours(other):
            # another migration of the source was started at the same time
            self.target.set_move(replace(target, state="abandoned"), replacing=target)
        for move, ended in ((source, ("served",)), (target, ("served", "moved", "abandoned"))):
            if move is not None and not self._is_ours(move) and move.state not in ended:
                raise Conflict(f"migrate: {_told(move)} is under way; finish or cancel it first")
        there = None if target is None or not self._is_ours(target) or target.state == "abandoned" else target.state
        here = None if source is None or source.state == "served" else source.state
        phase = PHASES.get((here, there))
        if phase is None or (source and target and here and there and source.id != target.id):
            raise Conflict(
                f"migrate: {self.source_url} ({_state(source)}) and {self.target_url} ({_state(target)}) aren't the "
                "stores of one migration: one was replaced or emptied; put the right one in place, or if it is gone "
                "for good, run graphmem migrate cancel --force with the other"
            )
        self.source.adopt(source)
        self.target.adopt(target)
        return phase, source, target

    def _is_ours(self, move: Move) -> bool:
        return (move.source, move.target) == (self.source_url, self.target_url)

    def advance(self, command: Command) -> Phase:
        """Take the steps of a command until its goal is reached.

        Raises
        ------
        Conflict
            If the phase doesn't allow it.
        InvalidInput
            If the target of a new migration isn't empty.
        BackendUnavailable
            If a store fails; run the command again.
        """
        for _ in range(_TRIES):
            phase, source, target = self._read()
            step = STEPS.get((command, phase))
            if step is None:
                if phase == GOALS[command]:
                    self._scrub()
                    return phase
                raise Conflict(f"migrate {command}: not possible in phase {phase}")
            if phase == "idle" and not self._has_our_rows(target) and self.target.scopes():
                raise self._not_empty()
            if target is not None and (command, phase) == ("copy", "starting"):
                self._require_copies(target)
            if step.when_equal:
                self.settle()
            elif (command, phase) in CHANGING_OVER:
                self._catch_up()
            self._set(step, source, target)
        raise Conflict(f"migrate {command}: the marks are changed by another process at the same time; try again")

    def _set(self, step: Step, source: Move | None, target: Move | None) -> bool:
        store, before = (self.source, source) if step.side == "source" else (self.target, target)
        known = next(
            (m for m in (source, target) if m is not None and self._is_ours(m) and m.state not in _ENDED), None
        )
        if known is None:
            known = Move(new_id(), "receiving", self.source_url, self.target_url, utc_now())
        after = None if step.state is None else replace(known, state=step.state)
        return store.set_move(after, replacing=before)

    def _has_our_rows(self, target: Move | None) -> bool:
        """Return whether the rows of a target are those of the source: it was moved there, or is a copy of it."""
        if target is None:
            return False
        return (target.state, self.source_url) in (("moved", target.target), ("abandoned", target.source))

    def _not_empty(self) -> InvalidInput:
        return InvalidInput(
            f"migrate: {self.target_url} isn't empty; its rows would be replaced: use another store, or move each "
            "scope by graphmem export and graphmem import"
        )

    def _require_copies(self, target: Move) -> None:
        """Check that the target has no scope that a process has written before it was marked: it has no token."""
        for scope in self.target.scopes():
            if JOB not in {state.job for state in self.target.find_job_states(scope)}:
                self.target.set_move(None, replacing=target)
                raise self._not_empty()

    def erase_source(self) -> bool:
        """Remove all rows of the source after the migration; its mark stays, so that processes are still refused.

        Returns
        -------
        bool
            False if other processes hold remains in its files: close them, and repeat it.

        Raises
        ------
        Conflict
            If the migration isn't cleaned up, or the target isn't the store that has taken over.
        """
        phase, _, target = self._read()
        if phase != "moved" or target is None:
            raise Conflict(f"migrate: {self.target_url} isn't the store that took over; nothing was erased")
        for scope in self.source.scopes():
            self.source.clear(scope)
        return self.source.scrub()

    # Copies -------------------------------------------------------------------------------------

    def ends(self) -> tuple[GraphBackend, GraphBackend]:
        """Return primary and secondary."""
        return (self.source, self.target) if self.phase in SOURCE_SERVES else (self.target, self.source)

    def scopes(self) -> list[Scope]:
        """Return the scopes of both stores."""
        return sorted(dict.fromkeys((*self.source.scopes(), *self.target.scopes())), key=lambda scope: scope.key)

    def copy(self, rows_per_second: float | None = None, on_rows: OnRows = lambda _: None) -> int:
        """Copy every scope that the secondary doesn't follow, beside running writes; return the number of scopes.

        It can be interrupted and repeated: rows that are there aren't written again.
        """
        primary, secondary = self.ends()
        done = 0
        for scope in self.scopes():
            if not self._follows(primary, secondary, scope):
                done += repair(primary, secondary, scope, rate=Rate(rows_per_second, self._sleep), on_rows=on_rows)
        self._scrub()
        return done

    def _scrub(self) -> None:
        """Scrub the files of both stores after erasures, if the processes haven't."""
        for store in (self.source, self.target):
            scrub(store)

    def _follows(self, primary: GraphBackend, secondary: GraphBackend, scope: Scope) -> bool:
        """Return whether the secondary has all changes of a scope, or got some in the last seconds."""
        first = token_of(secondary, scope)
        for _ in range(round(_PROGRESS / _LAG_STEP)):
            if not is_usable(now := token_of(secondary, scope)):
                return False
            if now != first or now == token_of(primary, scope):
                return True
            self._sleep(_LAG_STEP)
        return False

    def _catch_up(self) -> None:
        """Repair the scopes whose changes reach the secondary late, so that writers, who go on, wait less later."""
        primary, secondary = self.ends()
        goals = {scope: token_of(primary, scope) for scope in self.scopes()}
        late = self._left(secondary, lambda scope, token: _reaches(token, goals.get(scope, "")), _PROGRESS, _LAG)
        for scope in late:
            repair(primary, secondary, scope)

    def settle(self) -> None:
        """Repair until both stores are equal in all scopes; nobody writes meanwhile."""
        primary, secondary = self.ends()
        while behind := self._behind(primary, secondary):
            for scope in behind:
                repair(primary, secondary, scope)

    def _behind(self, primary: GraphBackend, secondary: GraphBackend) -> list[Scope]:
        """Return the scopes that the processes don't bring up to date by themselves."""
        return self._left(
            secondary, lambda scope, _: is_equal(primary, secondary, scope), _CATCHING_UP, _CATCHING_UP_LIMIT
        )

    def _left(
        self, secondary: GraphBackend, is_done: Callable[[Scope, str], bool], idle: float, limit: float
    ) -> list[Scope]:
        """Wait for the processes to transfer their changes; return the scopes that aren't done by their token.

        It ends after `idle` seconds in which no token changes, and after `limit` seconds at the latest.
        """
        left = dict.fromkeys(self.scopes(), "")
        waited, steps = 0.0, 0
        while True:
            before, tokens = left, {scope: token_of(secondary, scope) for scope in left}
            left = {scope: token for scope, token in tokens.items() if not is_done(scope, token)}
            waited = 0.0 if left != before else waited + _LAG_STEP
            if not left or waited > idle or steps >= limit / _LAG_STEP:
                return list(left)
            steps += 1
            self._sleep(_LAG_STEP)

    def status(self) -> MigrationStatus:
        """Return phase, lag and differences."""
        phase = self.phase
        primary, secondary = self.ends()
        scopes = self.scopes()
        behind = tuple(str(s) for s in scopes if not is_equal(primary, secondary, s)) if phase in DUAL else ()
        differences: Counter[str] = Counter()
        for scope in scopes:
            differences.update(differences_of(primary.find_job_state(scope, SHADOW)))
        return MigrationStatus(
            phase=phase,
            source=self.source_url,
            target=self.target_url,
            primary=self.source_url if primary is self.source else self.target_url,
            scopes=len(scopes),
            behind=behind,
            differences=dict(differences),
        )


def leave(store: GraphBackend) -> Move:
    """End a migration in one store alone, because the other one is gone for good; it is used as it is from then on.

    Returns
    -------
    Move
        The mark that it had.

    Raises
    ------
    InvalidInput
        If it is in no migration.
    Conflict
        If its mark changes at the same time.
    """
    move = _under_way(store.read_move())
    if move is None:
        raise InvalidInput("migrate: the store is in no migration")
    if not store.set_move(replace(move, state="served") if move.state == "serving" else None, replacing=move):
        raise Conflict("migrate: the mark is changed by another process at the same time; try again")
    return move


CHANGING_OVER: frozenset[tuple[Command, Phase]] = frozenset((("cutover", "copying"), ("rollback", "cut")))
"""Commands that make the secondary the primary, with the phase in which they begin."""
_ENDED = ("served", "abandoned")


def _reaches(token: str, other: str) -> bool:
    """Return whether a token is as late as another one in each slot, by their ids, which are in the order of time."""
    return is_usable(token) and all(a >= b for a, b in zip(slots_of(token), slots_of(other), strict=False))


def _same_store(url: str, target_url: str) -> InvalidInput:
    names = " and ".join(dict.fromkeys((plain_url(url), plain_url(target_url))))
    return InvalidInput(f"migrate: source and target are the same store, {names}")


def _under_way(move: Move | None) -> Move | None:
    return None if move is None or move.state == "served" else move


def _state(move: Move | None) -> str:
    return "no mark" if move is None else move.state


def _told(move: Move) -> str:
    return f"the migration of {move.source} to {move.target}"
