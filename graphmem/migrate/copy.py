"""Copy of a scope from the primary to the secondary, which is also how a difference is repaired."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from graphmem.errors import Conflict, GraphMemError, InvalidInput
from graphmem.migrate.tokens import JOB, SHADOW, is_usable, new_token, put_token, repair_token, token_of
from graphmem.models import (
    FORGETTING,
    Alias,
    Changes,
    Community,
    Entity,
    Episode,
    EpisodeEnd,
    EpisodeExpiry,
    EpisodeRedaction,
    IndexEntry,
    IndexKind,
    Membership,
    MembershipQuery,
    Mention,
    Removal,
    RemovalKind,
    Scope,
)
from graphmem.protocols import GraphBackend
from graphmem.upkeep.import_merge import result_of
from graphmem.upkeep.scope_rows import PAGE, TABLES, References, to_json

_BATCH = 500  # rows in a transaction of the secondary
_KEPT = 20_000  # differing rows of a kind that are kept between removing and storing; more are read again

Pair = tuple[Any, Any]
OnRows = Callable[[int], None]


class Overtaken(GraphMemError):
    """Another repair of the same scope began."""


class Rate:
    """A limit of rows per second; None is no limit."""

    def __init__(self, rows_per_second: float | None = None, sleep: Callable[[float], None] = time.sleep) -> None:
        self._rate = rows_per_second
        self._sleep = sleep

    def wait(self, rows: int) -> None:
        """Wait as long as these rows take."""
        if self._rate is not None and rows:
            self._sleep(rows / self._rate)


def repair(
    primary: GraphBackend,
    secondary: GraphBackend,
    scope: Scope,
    *,
    rate: Rate | None = None,
    on_rows: OnRows = lambda _: None,
) -> bool:
    """Make a scope of the secondary equal to that of the primary, and give it the token of that state.

    It compares all rows, and writes those that differ in batches. If it is interrupted, the next repair continues. With
    a `rate`, a pass beside running writes goes before the one in a snapshot, which then finds little to write.

    Returns
    -------
    bool
        False if another repair of the scope began, which completes the work.

    Raises
    ------
    BackendUnavailable
        If one of the stores fails.
    """
    if not token_of(primary, scope):
        primary.atomic(lambda: token_of(primary, scope) or put_token(primary, scope, new_token(primary)))
    mine = repair_token(secondary)
    put_token(secondary, scope, mine)
    try:
        if rate is not None:
            _Copy(primary, secondary, scope, mine, rate, on_rows, lenient=True).run()
        return primary.snapshot(lambda snapshot: _finish(snapshot, secondary, scope, mine, on_rows))
    except Overtaken:
        return False


def _finish(primary: GraphBackend, secondary: GraphBackend, scope: Scope, mine: str, on_rows: OnRows) -> bool:
    token = token_of(primary, scope)
    copy = _Copy(primary, secondary, scope, mine, Rate(), on_rows, lenient=False)
    copy.run()
    copy.apply(lambda: put_token(secondary, scope, token))
    return is_usable(token)


class _Copy:
    """One pass over all rows of a scope; `lenient` skips batches that don't fit, because the primary changes."""

    def __init__(
        self,
        primary: GraphBackend,
        secondary: GraphBackend,
        scope: Scope,
        mine: str,
        rate: Rate,
        on_rows: OnRows,
        *,
        lenient: bool,
    ) -> None:
        self._primary = primary
        self._secondary = secondary
        self._scope = scope
        self._mine = mine
        self._rate = rate
        self._on_rows = on_rows
        self._lenient = lenient
        self._references = References()

    def run(self) -> None:
        primary, secondary, scope = self._primary, self._secondary, self._scope
        jobs, held = (
            {state.job: state for state in store.find_job_states(scope) if state.job not in (JOB, SHADOW)}
            for store in (primary, secondary)
        )
        if held.keys() - jobs.keys():  # job states can't be removed: the scope was cleared
            self._clear()
            held = {}
        for kind in KINDS:
            self._put(kind, self._remove(kind))
        self._copy_index()
        changed = tuple(state for job, state in jobs.items() if held.get(job) != state)
        if changed and not self._lenient:  # last, as that of an erasure says that its rows are gone
            self._write(Changes(job_states=changed), erased=any(state.job == FORGETTING for state in changed))

    def _clear(self) -> None:
        """Remove the scope from the secondary: its rows in batches, then the rest with its token in one transaction."""
        for kind in reversed(KINDS):
            self._remove_all(kind.removal(row) for _, row in kind.read(self._secondary, self._scope))
        self._remove_all(_entry_removal(entry) for page in self._held_entries() for entry in page)
        self._write(Changes(), erased=True, clear=True)

    # Rows ---------------------------------------------------------------------------------------

    def _pairs(self, kind: CopiedKind) -> Iterator[Pair]:
        ours = kind.read(self._primary, self._scope, self._references)
        return paired(ours, kind.read(self._secondary, self._scope))

    def _remove(self, kind: CopiedKind) -> list[Pair] | None:
        """Remove what goes first; return the pairs that differ then, None if they are too many to keep."""
        if next(kind.read(self._secondary, self._scope), None) is None:
            return None
        different: list[Pair] = []
        self._remove_all(self._gone(kind, different))
        return different if len(different) < _KEPT else None

    def _gone(self, kind: CopiedKind, different: list[Pair]) -> Iterator[Removal]:
        for ours, theirs in self._pairs(kind):
            if ours is not None and theirs is not None and kind.text(ours) == kind.text(theirs):
                continue
            goes = theirs is not None and (ours is None or kind.goes_first(ours, theirs))
            if ours is not None and len(different) < _KEPT:
                different.append((ours, None if goes else theirs))
            if goes:
                yield kind.removal(theirs)

    def _remove_all(self, removals: Iterator[Removal]) -> None:
        for batch in iter(lambda: tuple(islice(removals, _BATCH)), ()):
            self._write(Changes(removals=batch), erased=True)

    def _put(self, kind: CopiedKind, found: Sequence[Pair] | None) -> None:
        """Store the rows of the pairs that were found to differ, or else of those that a scan finds."""
        for begin in range(0, len(found or ()), _BATCH):
            batch = (found or ())[begin : begin + _BATCH]
            self._put_rows(kind, batch)
            self._told(len(batch))
        if found is None:
            self._scan(kind)

    def _scan(self, kind: CopiedKind) -> None:
        text, read = kind.text, 0
        different: list[Pair] = []
        for ours, theirs in self._pairs(kind):
            if ours is None:
                continue
            read += 1
            if theirs is None or text(ours) != text(theirs):
                different.append((ours, theirs))
            if read % _BATCH == 0:
                self._put_rows(kind, different)
                different = []
                self._told(_BATCH)
        self._put_rows(kind, different)
        self._told(read % _BATCH)

    def _told(self, rows: int) -> None:
        self._on_rows(rows)
        self._rate.wait(rows)

    def _put_rows(self, kind: CopiedKind, different: Sequence[Pair]) -> None:
        if not different:
            return
        if kind is not EPISODES:
            self._write(kind.changes([ours for ours, _ in different]))
            return
        if new := [ours for ours, theirs in different if theirs is None]:
            self._add(new)
        if found := patches((o, t) for o, t in different if t is not None and is_patchable(o, t)):
            self._write(Changes(**found))

    def _add(self, episodes: Sequence[Episode]) -> None:
        self.apply(lambda: self._secondary.add_episodes(self._scope, episodes))

    # The index ----------------------------------------------------------------------------------

    def _copy_index(self) -> None:
        primary, secondary, scope = self._primary, self._secondary, self._scope
        model, held = primary.index_state(scope).model, secondary.index_state(scope).model
        if held is not None and held != model:
            self.apply(lambda: secondary.reset_index(scope))
        for page in self._held_entries():
            there = _entries(primary, scope, page)
            self._remove_all(_entry_removal(entry) for entry in page if (entry.kind, entry.key) not in there)
        for read in primary.entry_pages(scope, chunk=_BATCH):
            page = [entry for entry in read if self._references.keep(entry) is not None]
            there = _entries(secondary, scope, page)
            changed = [entry for entry in page if there.get((entry.kind, entry.key)) != _content(entry)]
            if changed:
                self._write(Changes(index=tuple(changed)))
            self._told(len(read))

    def _held_entries(self) -> Iterable[Sequence[IndexEntry]]:
        return self._secondary.entry_pages(self._scope, chunk=PAGE)

    # Writes -------------------------------------------------------------------------------------

    def _write(self, changes: Changes, *, erased: bool = False, clear: bool = False) -> None:
        def work() -> None:
            self._secondary.write(self._scope, changes)
            if clear:
                self._secondary.clear(self._scope)
            if erased:
                put_token(self._secondary, self._scope, self._mine, erased=True)

        self.apply(work)

    def apply(self, work: Callable[[], object]) -> None:
        """Run a write of the secondary in a transaction in which this repair is the last one that began."""

        def checked() -> None:
            if token_of(self._secondary, self._scope) != self._mine:
                raise Overtaken(f"scope {self._scope}: another repair began")
            work()

        try:
            self._secondary.atomic(checked)
        except (Conflict, InvalidInput):
            if not self._lenient:
                raise


def _entry_removal(entry: IndexEntry) -> Removal:
    return Removal("index", entry.key, entry.kind)


def _content(entry: IndexEntry) -> tuple[Any, ...]:
    return entry.model, entry.vectors, entry.pieces, entry.detail, entry.complete


def _entries(
    store: GraphBackend, scope: Scope, page: Iterable[IndexEntry]
) -> dict[tuple[IndexKind, str], tuple[Any, ...]]:
    """Return the content of the entries of a store with the keys of a page."""
    keys: dict[IndexKind, list[str]] = {}
    for entry in page:
        keys.setdefault(entry.kind, []).append(entry.key)
    found = (entry for kind, named in keys.items() for entry in store.find_index(scope, kind, named))
    return {(entry.kind, entry.key): _content(entry) for entry in found}


def paired(ours: Iterator[tuple[Key, Any]], theirs: Iterator[tuple[Key, Any]]) -> Iterator[Pair]:
    """Yield the rows of two sources that have the same key, in ascending order; None for one that has none."""
    left, right = next(ours, None), next(theirs, None)
    while left is not None or right is not None:
        if right is None or (left is not None and left[0] < right[0]):
            assert left is not None
            yield left[1], None
            left = next(ours, None)
        elif left is None or right[0] < left[0]:
            yield None, right[1]
            right = next(theirs, None)
        else:
            yield left[1], right[1]
            left, right = next(ours, None), next(theirs, None)


# Rows ---------------------------------------------------------------------------------------------


Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class CommunityRows:
    """A community with its memberships, which can't be removed one by one."""

    community: Community
    memberships: tuple[Membership, ...]


@dataclass(frozen=True, slots=True)
class CopiedKind:
    """A kind of row.

    Attributes
    ----------
    name
        Name of the kind.
    goes_first
        Whether a row that differs (ours, theirs) is removed before any row of the kind is stored.
    """

    name: RemovalKind
    goes_first: Callable[[Any, Any], bool]

    def read(
        self, store: GraphBackend, scope: Scope, references: References | None = None
    ) -> Iterator[tuple[Key, Any]]:
        """Yield (key, row) of a scope in ascending order of key; `references` leaves out those to deleted rows."""
        rows: Iterable[Any] = TABLES[self.name].read(store, scope)
        if references is not None:
            rows = (kept for row in rows if (kept := references.keep(row)) is not None)
        groups = _groups(store, scope, rows, references) if self.name == "community" else rows
        return ((_key_of(row), row) for row in groups)

    def removal(self, row: Any) -> Removal:
        """Return the removal of a row."""
        match row:
            case Alias():
                return Removal("alias", row.alias, row.entity_type)
            case Mention():
                return Removal("mention", row.entity_id, row.episode_id)
            case CommunityRows():
                return Removal("community", row.community.id)
            case _:
                return Removal(self.name, row.id)

    def changes(self, rows: Sequence[Any]) -> Changes:
        """Return what stores rows."""
        if self.name == "community":
            members = tuple(member for row in rows for member in row.memberships)
            return Changes(communities=tuple(row.community for row in rows), memberships=members)
        return Changes(**{TABLES[self.name].part: tuple(rows)})

    def text(self, row: Any) -> str:
        """Return a row as text; equal rows have equal texts."""
        if isinstance(row, CommunityRows):
            members = (to_json("membership", member) for member in row.memberships)
            return "\n".join((to_json("community", row.community), *members))
        return to_json(self.name, row)


def _key_of(row: Any) -> Key:
    match row:
        case Alias():
            return row.entity_id, row.alias, row.entity_type
        case Mention():
            return row.episode_id, row.entity_id
        case CommunityRows():
            return row.community.level, row.community.id
        case _:
            return (row.id,)


def _groups(
    store: GraphBackend, scope: Scope, communities: Iterable[Any], references: References | None
) -> Iterator[CommunityRows]:
    rows = iter(communities)
    while page := list(islice(rows, PAGE)):
        members: dict[str, list[Membership]] = {community.id: [] for community in page}
        for row in store.all_memberships([scope], MembershipQuery(community_ids=tuple(members), ended=True)):
            if references is None or references.keep(row) is not None:
                members[row.community_id].append(row)
        yield from (CommunityRows(c, tuple(sorted(members[c.id], key=lambda m: m.key))) for c in page)


def is_patchable(ours: Episode, theirs: Episode) -> bool:
    """Return whether an episode of the secondary can be made equal to that of the primary without a removal."""
    fields = ("text", "processed_at", "error", "attempts", "retry_at", "ended_at", "expires_at")
    return theirs.changed(**{name: getattr(ours, name) for name in fields}) == ours


def patches(pairs: Iterable[tuple[Episode, Episode]]) -> dict[str, Any]:
    """Return the parts of `Changes` that make episodes of the secondary equal to those of the primary, if any."""
    each = list(pairs)
    parts = {
        "results": tuple(result_of(ours) for ours, _ in each),
        "redactions": tuple(EpisodeRedaction(ours.id, ours.text) for ours, theirs in each if ours.text != theirs.text),
        "episode_ends": tuple(
            EpisodeEnd(ours.id, ours.ended_at) for ours, theirs in each if ours.ended_at != theirs.ended_at
        ),
        "episode_expiries": tuple(
            EpisodeExpiry(ours.id, ours.expires_at) for ours, theirs in each if ours.expires_at != theirs.expires_at
        ),
    }
    return {name: rows for name, rows in parts.items() if rows}


def _always(_ours: Any, _theirs: Any) -> bool:
    return True


def _never(_ours: Any, _theirs: Any) -> bool:
    return False


def _is_renamed(ours: Entity, theirs: Entity) -> bool:
    """Return whether the name differs: one that moves from one entity to another would be held twice."""
    return (ours.canonical_name, ours.entity_type) != (theirs.canonical_name, theirs.entity_type)


EPISODES = CopiedKind("episode", lambda ours, theirs: not is_patchable(ours, theirs))
KINDS = (
    EPISODES,
    CopiedKind("entity", _is_renamed),
    CopiedKind("alias", _never),
    CopiedKind("edge", _always),  # one that has ended may still hold the key of another
    CopiedKind("mention", _always),
    CopiedKind("community", _always),
    CopiedKind("recall", _always),
    CopiedKind("merge", _never),
)
"""In the order in which they are copied: a row references only rows before it."""
