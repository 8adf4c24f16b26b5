"""Claims of episodes: their owners, which tell in which process a round of the queue runs, and what a round claims."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from graphmem.ingest.pool import ScopeRotation
from graphmem.models import Episode, Scope, new_id
from graphmem.protocols import GraphBackend

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)

live_owners: set[str] = set()
"""Owners of the active rounds of this process."""

failed_owners: set[str] = set()
"""Owners of the rounds of this process that ended with an exception and may have left claims.

Not told by their process id: a container that is started again has the same one.
"""


@contextmanager
def live_owner() -> Generator[str]:
    """Return the owner of a round that is active in the block."""
    owner = f"{process_prefix()}{new_id()}"
    live_owners.add(owner)
    try:
        yield owner
    except BaseException:
        failed_owners.add(owner)
        raise
    finally:
        live_owners.discard(owner)


def process_prefix() -> str:
    """Return the first part of the owners of all claims of this process."""
    return f"{_machine()}:{os.getpid()}:"


@cache
def _machine() -> str:
    """Return the first part of the owners of all claims whose process ids this process can look up.

    Containers may share a host name and have the same process ids in their own namespaces, and so may machines.
    """
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip())
    with suppress(OSError):
        parts.append(str(Path("/proc/self/ns/pid").stat().st_ino))
    return "/".join(parts)


def is_gone(owner: str) -> bool:
    """Return whether a claim has no live owner: its round or process has ended. False if this can't be looked up."""
    machine, _, rest = owner.partition(":")
    pid = rest.partition(":")[0]
    if machine != _machine() or not pid.isdigit():
        return False
    if int(pid) == os.getpid():
        return owner not in live_owners
    if sys.platform == "win32":
        return False  # `os.kill` would send an event there
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


class Claims:
    """Claims of the episodes that a queue extracts, scope by scope in turn.

    Parameters
    ----------
    backend
        The store.
    seconds
        Duration of a claim.
    by_process
        Whether one process at a time extracts a scope.
    on_lost
        Records that processes ended while they extracted some episodes; returns for each whether it is tried again.
    clock
        Returns the present, by which episodes are due and claims expire.
    """

    def __init__(
        self,
        backend: GraphBackend,
        seconds: float,
        *,
        by_process: bool,
        on_lost: Callable[[Sequence[Episode]], Sequence[bool]],
        clock: Callable[[], datetime],
    ) -> None:
        self._backend = backend
        self._seconds = seconds
        self._is_one_process = by_process
        self._on_lost = on_lost
        self._clock = clock
        self._owners: set[str] = set()
        self._rotation = ScopeRotation()
        self._lost: dict[str, Scope] = {}  # episodes to extract one at a time, as a process ended meanwhile
        self._trial: str | None = None  # the one of them that is being extracted

    @contextmanager
    def round(self) -> Generator[str]:
        """Return the owner of the claims that are made in the block."""
        with live_owner() as owner:  # it is live first: `_release_dead` drops the owners that aren't
            self._owners.add(owner)
            try:
                yield owner
            finally:
                self.end_trial()
        self._owners.discard(owner)  # kept after an exception: a failed round may hold claims

    def end_trial(self) -> None:
        """Record that an episode that is extracted alone was extracted, or failed."""
        self._trial = None

    def schedule(self, scopes: Iterable[Scope]) -> None:
        """Schedule scopes in which episodes were stored."""
        self._rotation.add(scopes)

    def release_all(self) -> None:
        """Release the claims of this queue."""
        if owners := list(self._owners):
            self._backend.release_claims(owners)

    def claim(
        self, owner: str, limit: int, scopes: Sequence[Scope] | None, full: Collection[Scope] = ()
    ) -> list[Episode]:
        """Claim at most `limit` due episodes of some scopes, or of the whole store, but of none that is `full`.

        When no other episode is pending, claims of terminated processes of this machine and of failed rounds of this
        process are released and claimed again. Episodes whose extraction a process didn't survive are then claimed
        one at a time.
        """
        self._release_lost(self._expired_owners())
        if self._trial is not None:
            return []
        claimed = self._claim_lost(owner, scopes, full) or self._claim_due(owner, limit, scopes, full)
        if not claimed and not full and self._release_dead():
            claimed = self._claim_lost(owner, scopes, full) or self._claim_due(owner, limit, scopes, full)
        return claimed

    def _claim_lost(self, owner: str, scopes: Sequence[Scope] | None, full: Collection[Scope]) -> list[Episode]:
        """Claim one of the episodes that are extracted one at a time, or one before them in their scopes."""
        some = [scope for scope in dict.fromkeys(self._lost.values()) if scopes is None or scope in scopes]
        claimed = self._claim_due(owner, 1, some, full) if some else []
        if claimed:
            self._trial = claimed[0].id
            self._lost.pop(self._trial, None)
        else:
            self._lost = {i: scope for i, scope in self._lost.items() if scope not in some or scope in full}
        return claimed

    def _claim_due(
        self, owner: str, limit: int, scopes: Sequence[Scope] | None, full: Collection[Scope]
    ) -> list[Episode]:
        now = self._clock()
        until = now + timedelta(seconds=self._seconds)
        own = process_prefix() if self._is_one_process else None
        while scopes is None and (some := self._rotation.next(full)):
            claimed = self._backend.claim_episodes(owner, now=now, until=until, limit=limit, scopes=some, own=own)
            self._rotation.record_claim(some, [episode.scope for episode in claimed], all_due=len(claimed) < limit)
            if claimed:
                return claimed
        some = None if scopes is None else [scope for scope in scopes if scope not in full]
        if full and not some:
            return []  # the queue of the whole store would give more of them
        claimed = self._backend.claim_episodes(owner, now=now, until=until, limit=limit, scopes=some, own=own)
        if scopes is None and len(claimed) == limit:
            self._rotation.add(episode.scope for episode in claimed)
        return claimed

    def _release_dead(self) -> bool:
        """Release claims of terminated processes of this machine and of failed rounds; return whether any was held."""
        dead = [owner for owner in self._backend.claim_owners(self._clock()) if is_gone(owner)]
        own = [owner for owner in dead if owner in failed_owners]
        released = self._backend.release_claims(own) if own else []
        failed_owners.difference_update(own)
        self._owners &= live_owners
        return self._release_lost([owner for owner in dead if owner not in own]) or bool(released)

    def _expired_owners(self) -> list[str]:
        """Return the owners of other processes whose claims have expired: their process ended, or takes too long."""
        every = [o for o in self._backend.claim_owners(_LONG_AGO) if o not in live_owners | failed_owners]
        valid = set(self._backend.claim_owners(self._clock())) if every else set[str]()
        return [owner for owner in every if owner not in valid]

    def _release_lost(self, lost: Sequence[str]) -> bool:
        """Release claims of processes that ended during an extraction; return whether any was held.

        If only one episode was being extracted, that counts as a failed attempt. Of several, nobody knows which one
        was the cause: they are extracted one at a time.
        """
        episodes = self._backend.release_claims(lost) if lost else []
        for episode, is_waiting in zip(episodes, self._on_lost(episodes) if episodes else (), strict=True):
            if is_waiting:
                self._lost[episode.id] = episode.scope
        return bool(episodes)
