"""Comparison of the two stores of a migration: counts, checksums, answers to questions, and shadow reads."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from graphmem.errors import StoreReadOnly
from graphmem.migrate.tokens import JOB, SHADOW, is_equal, is_usable, token_of
from graphmem.models import Changes, EdgeQuery, EpisodeQuery, JobState, Model, Scope
from graphmem.protocols import GraphBackend
from graphmem.text import counted
from graphmem.upkeep.scope_rows import CONTENT, PAGE, Checksum, all_rows, to_json

_TRIES, _PAUSE = 200, 0.05  # attempts to read both stores at the same write, and seconds between them
_SAMPLED = 1000  # facts and episodes of a scope that questions are drawn from
_WORDS = 12  # of an episode, as a question

Answers = Callable[[GraphBackend, Scope, str], tuple[Sequence[str], Sequence[str]]]
"""Returns the ids of the facts of a recall, and of the episodes of a search, in their order."""


class Verification(Model):
    """Result of a comparison.

    Attributes
    ----------
    scopes
        Number of scopes compared.
    rows
        Number of rows in each store, by kind.
    differences
        What differs, one line each; names scopes, kinds of rows and ids.
    skipped
        Scopes in which the secondary was behind all the time, so that they couldn't be compared.
    recalls, searches
        Number of questions with equal results.
    questions
        Number of questions asked.
    """

    scopes: int
    rows: dict[str, int]
    differences: tuple[str, ...]
    skipped: tuple[str, ...]
    recalls: int
    searches: int
    questions: int

    @property
    def is_equal(self) -> bool:
        """Whether everything was compared and nothing differs."""
        return not self.differences and not self.skipped


@dataclass(frozen=True, slots=True)
class _Contents:
    counts: Counter[str]
    checksum: str


def verify(
    primary: GraphBackend,
    secondary: GraphBackend,
    scopes: Sequence[Scope],
    answers: Answers | None = None,
    questions: int = 0,
    sleep: Callable[[float], None] = time.sleep,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Verification:
    """Compare two stores beside running writes.

    Parameters
    ----------
    primary, secondary
        The stores.
    scopes
        Scopes to compare.
    answers
        Asks a store.
    questions
        Number of questions, which are drawn from the facts and episodes of the scopes.
    sleep
        Waits for a number of seconds.
    on_progress
        Called with the number of rows of either store that were read since the last call, and with 1 after a question.
    """
    rows: Counter[str] = Counter()
    differences: list[str] = []
    skipped: list[str] = []
    for scope in scopes:
        found = _compared(primary, secondary, scope, sleep, on_progress)
        if found is None:
            skipped.append(str(scope))
            continue
        ours, theirs = found
        rows += ours.counts
        differences += [
            f"{scope}: {kind}: {counted(ours.counts[kind], 'row')} in the primary, "
            f"{theirs.counts[kind]:,} in the secondary"
            for kind in sorted({*ours.counts, *theirs.counts})
            if ours.counts[kind] != theirs.counts[kind]
        ]
        if ours.checksum != theirs.checksum:
            differences.append(f"{scope}: the checksums differ, {ours.checksum} and {theirs.checksum}")
    recalls = searches = 0
    asked = draw(primary, scopes, questions) if answers is not None else []
    for scope, row_id, question in asked:
        assert answers is not None
        same = _same_answers(primary, secondary, scope, question, answers, sleep)
        on_progress(1)
        recalls, searches = recalls + same[0], searches + same[1]
        kinds = ("recall", "search")
        differences += [
            f"{scope}: a {k} about {row_id} differs" for k, equal in zip(kinds, same, strict=True) if not equal
        ]
    return Verification(
        scopes=len(scopes),
        rows=dict(rows),
        differences=tuple(differences),
        skipped=tuple(skipped),
        recalls=recalls,
        searches=searches,
        questions=len(asked),
    )


def _compared(
    primary: GraphBackend,
    secondary: GraphBackend,
    scope: Scope,
    sleep: Callable[[float], None],
    on_progress: Callable[[int], None],
) -> tuple[_Contents, _Contents] | None:
    """Return the contents of both stores at a moment when both are at the same write; None if there was none."""

    def of_primary(ours: GraphBackend, theirs: GraphBackend) -> tuple[_Contents, _Contents] | None:
        token = token_of(theirs, scope)
        if not is_usable(token) or token_of(ours, scope) != token:
            return None
        return _contents(ours, scope, on_progress), _contents(theirs, scope, on_progress)

    for _ in range(_TRIES):
        if is_equal(primary, secondary, scope):  # a snapshot of a server locks the scope, and holds up the secondary
            found = secondary.snapshot(lambda theirs: primary.snapshot(lambda ours: of_primary(ours, theirs)))
            if found is not None:
                return found
        sleep(_PAUSE)
    return None


def _contents(store: GraphBackend, scope: Scope, on_progress: Callable[[int], None]) -> _Contents:
    counts: Counter[str] = Counter()
    total = Checksum()
    read = 0
    for read, (kind, row) in enumerate(all_rows(store, scope, extras=True), 1):
        if read % PAGE == 0:
            on_progress(PAGE)
        if not (isinstance(row, JobState) and row.job in (JOB, SHADOW)):
            counts[kind] += 1
            if kind in CONTENT:
                total.add(kind, to_json(kind, row))
    on_progress(read % PAGE)
    return _Contents(counts, total.text())


def draw(store: GraphBackend, scopes: Sequence[Scope], questions: int) -> list[tuple[Scope, str, str]]:
    """Return questions about what a store holds, always the same ones: (scope, id of a fact or episode, question)."""
    found: list[tuple[Scope, str, str]] = []
    for scope in scopes:
        facts = store.find_edges([scope], EdgeQuery(versions="active"), limit=_SAMPLED)
        episodes = store.find_episodes([scope], EpisodeQuery(), limit=_SAMPLED)
        found += [(scope, edge.id, edge.fact) for edge in facts if edge.fact]
        found += [(scope, e.id, " ".join(e.text.split()[:_WORDS])) for e in episodes if e.text.strip()]
    return random.Random(0).sample(found, min(questions, len(found)))


def _same_answers(
    primary: GraphBackend,
    secondary: GraphBackend,
    scope: Scope,
    question: str,
    answers: Answers,
    sleep: Callable[[float], None],
) -> tuple[bool, bool]:
    """Return whether recall and search give equal results; asks again while writes go on."""
    same = [False, False]
    for _ in range(_TRIES):
        before = token_of(primary, scope)
        ours, theirs = (answers(store, scope, question) for store in (primary, secondary))
        same = [mine or list(one) == list(other) for mine, one, other in zip(same, ours, theirs, strict=True)]
        if all(same) or before == token_of(primary, scope) == token_of(secondary, scope):
            break
        sleep(_PAUSE)
    return same[0], same[1]


def warm_up(store: GraphBackend, scopes: Sequence[Scope], answers: Answers, questions: int = 5) -> int:
    """Ask a store about what it holds, so that a server has planned its queries before callers wait for them.

    Returns the number of questions.
    """
    asked = draw(store, scopes, questions)
    for scope, _, question in asked:
        answers(store, scope, question)
    return len(asked)


# Stores for questions -----------------------------------------------------------------------------


def read_only(store: GraphBackend) -> GraphBackend:
    """Return a store that refuses writes, such as the counts of retrievals, and isn't closed."""
    return cast("GraphBackend", _ReadOnly(store))


_WRITES: Iterable[str] = frozenset(
    "write atomic add_episodes claim_episodes release_claims record_retrievals decay_retrievals reset_index clear "
    "scrub write_unless_erased".split()
)


class _ReadOnly:
    def __init__(self, store: GraphBackend) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return _refused if name in _WRITES else getattr(self._store, name)

    def close(self) -> None:
        """Do nothing: the store is used by others."""


def _refused(*_args: Any, **_kwargs: Any) -> Any:
    raise StoreReadOnly("the comparison of two stores writes nothing")


@dataclass(frozen=True, slots=True)
class Read:
    """A read of the primary.

    Attributes
    ----------
    name, args, kwargs
        The method and its arguments; the first one names the scopes.
    result
        What the primary returned.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any

    def repeated(self, store: GraphBackend) -> Any:
        """Return the result of a store."""
        return getattr(store, self.name)(*self.args, **self.kwargs)

    @property
    def scopes(self) -> Sequence[Scope]:
        """The scopes that were read."""
        return [self.args[0]] if isinstance(self.args[0], Scope) else self.args[0]


def compare(primary: GraphBackend, secondary: GraphBackend, read: Read) -> None:
    """Count a read whose result differs although both stores are at the same write."""
    if read.repeated(secondary) == read.result:
        return
    if read.repeated(primary) != read.repeated(secondary) and all(is_equal(primary, secondary, s) for s in read.scopes):
        for scope in read.scopes:
            primary.atomic(lambda scope=scope: _count(primary, scope, read.name))


def _count(store: GraphBackend, scope: Scope, name: str) -> None:
    counts = Counter(differences_of(store.find_job_state(scope, SHADOW)))
    counts[name] += 1
    cursor = " ".join(f"{kind}:{count}" for kind, count in sorted(counts.items()))
    store.write(scope, Changes(job_states=(JobState(SHADOW, episodes=counts.total(), cursor=cursor),)))


def differences_of(state: JobState) -> dict[str, int]:
    """Return the number of differing shadow reads by method."""
    pairs = (part.partition(":") for part in state.cursor.split())
    return {name: int(count) for name, _, count in pairs}
