"""The pool of extractions: the episodes of a scope or session in order, whoever claimed them."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence

import pytest

from graphmem.errors import BackendUnavailable
from graphmem.ingest.pool import ExtractionOrder, ExtractionPool
from graphmem.models import Episode, Scope

SECONDS = 20


def test_a_later_claim_of_another_thread_does_not_overtake_an_earlier_one() -> None:
    turns = [Episode(scope=Scope("tests"), text=f"turn {n}", session_id="s") for n in range(2)]
    waiting, read = list(turns), list[str]()
    claimed, overtaken = threading.Event(), threading.Event()
    pool: ExtractionPool[None] = ExtractionPool(4)

    def claim(_: int, __: Collection[Scope]) -> list[Episode]:
        if not waiting:
            return []
        turn = waiting.pop(0)
        if turn is turns[0]:
            claimed.set()
            overtaken.wait(0.3)  # time for the other thread, if it may claim now
        return [turn]

    def work(group: Sequence[Episode]) -> None:
        [turn] = group
        read.append(turn.text)
        overtaken.set()

    def run() -> None:
        pool.run(claim, work, None, on_result=lambda _: None, stopping=lambda: False)

    first = threading.Thread(target=run)
    first.start()
    assert claimed.wait(10)
    run()
    first.join()
    assert read == ["turn 0", "turn 1"]


def turns(scope: str, *sessions: str) -> list[Episode]:
    """Return a turn of each session, in this order; its text is its place."""
    return [Episode(scope=Scope(scope), text=str(n), session_id=session) for n, session in enumerate(sessions)]


class Groups:
    """Runs a pool on episodes that wait; notes the groups in order, and how many of a scope ran at once."""

    def __init__(
        self,
        waiting: Sequence[Episode],
        order: ExtractionOrder,
        *,
        group: int = 4,
        together: int = 1,
        most: int = 100,
        limit: int | None = None,
    ) -> None:
        self.read: list[tuple[str, str]] = []
        self.most = 0
        self._waiting = list(waiting)
        self._running: list[str] = []
        self._lock = threading.Lock()
        self._together = threading.Barrier(together)
        self._most_claimed = most
        pool: ExtractionPool[None] = ExtractionPool(4, group, order)
        pool.run(self._claim, self._work, limit, on_result=lambda _: None, stopping=lambda: False)

    def _claim(self, most: int, full: Collection[Scope]) -> list[Episode]:
        claimed = [episode for episode in self._waiting if episode.scope not in full][: min(most, self._most_claimed)]
        self._waiting = [episode for episode in self._waiting if episode not in claimed]
        return claimed

    def _work(self, group: Sequence[Episode]) -> None:
        scope = str(group[0].scope)
        with self._lock:
            self._running.append(scope)
            self.most = max(self.most, self._running.count(scope))
            self.read.append((scope, " ".join(episode.text for episode in group)))
        self._together.wait(SECONDS)
        with self._lock:
            self._running.remove(scope)


def test_sessions_of_a_scope_are_read_one_after_the_other_in_the_order_in_which_they_were_stored() -> None:
    groups = Groups(turns("a", *(["x"] * 5), "y", "z", "y", "y"), "scope")
    assert (groups.most, groups.read) == (1, [("a", read) for read in ("0 1 2 3", "4", "5", "6", "7 8")])


def test_different_scopes_are_read_at_the_same_time() -> None:
    waiting = [turn for scope in "abcd" for turn in turns(scope, "x", "y")]
    groups = Groups(waiting, "scope", together=4)  # each group waits for those of the three other scopes
    assert groups.most == 1
    assert sorted(groups.read[:4]) == [(scope, "0") for scope in "abcd"]


def test_a_scope_with_a_long_queue_does_not_fill_the_pool() -> None:
    waiting = [*turns("long", *map(str, range(300))), *turns("short", "x", "y")]
    groups = Groups(waiting, "scope", group=1)
    assert {scope for scope, _ in groups.read[:40]} == {"long", "short"}


def test_sessions_of_a_scope_are_read_at_the_same_time_if_asked_for() -> None:
    groups = Groups(turns("a", "x", "y", "x", "y"), "session", together=2)
    assert (groups.most, sorted(groups.read)) == (2, [("a", "0 2"), ("a", "1 3")])


def test_groups_do_not_depend_on_when_their_turns_are_claimed() -> None:
    waiting = turns("a", *(["s1"] * 3 + ["s2"] * 7))
    expected = [("a", "0 1 2"), ("a", "3 4 5 6"), ("a", "7 8 9")]
    for most in (1, 2, 3, 5, 100):
        assert Groups(waiting, "scope", most=most).read == expected
    assert Groups(waiting, "scope", limit=5).read == [("a", "0 1 2"), ("a", "3 4")]
    both = [turn for pair in zip(turns("a", *["s"] * 6), turns("b", *["s"] * 6), strict=True) for turn in pair]
    assert sorted(Groups(both, "scope", most=3).read) == [
        (scope, part) for scope in "ab" for part in ("0 1 2 3", "4 5")
    ]
    assert len(Groups(turns("a", *"abcdefghij"), "session", most=1).read) == 10


@pytest.mark.parametrize("failing", ["claim", "on_result", "stopping"])
def test_an_error_is_raised_after_the_running_groups_have_ended_and_their_results_are_delivered(failing: str) -> None:
    pool: ExtractionPool[str] = ExtractionPool(2)
    waiting, delivered = [*turns("a", "x"), *turns("b", "x")], list[str]()
    both, failed = threading.Barrier(2), threading.Event()

    def fail(call: str, *, if_so: bool) -> None:
        if call == failing and if_so and not failed.is_set():
            failed.set()
            raise BackendUnavailable(call)

    def claim(most: int, _: Collection[Scope]) -> list[Episode]:
        fail("claim", if_so=not waiting)
        claimed, waiting[:] = waiting[:], []
        return claimed

    def work(group: Sequence[Episode]) -> str:
        both.wait(SECONDS)
        if str(group[0].scope) == "b" or failing != "on_result":
            assert failed.wait(SECONDS)
        return str(group[0].scope)

    def deliver(result: str) -> None:
        delivered.append(result)
        fail("on_result", if_so=True)

    def stopping() -> bool:
        fail("stopping", if_so=not waiting)
        return False

    with pytest.raises(BackendUnavailable, match=failing):
        pool.run(claim, work, None, on_result=deliver, stopping=stopping)
    assert sorted(delivered) == ["a", "b"]


def test_a_thread_that_cannot_start_ends_its_round_and_not_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    pool: ExtractionPool[str] = ExtractionPool(1)
    waiting, delivered = turns("a", "x"), list[str]()
    start, stop = threading.Thread.start, threading.Event()

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "graphmem-extract-one":
            raise RuntimeError("can't start new thread")
        start(thread)

    def claim(_: int, __: Collection[Scope]) -> list[Episode]:
        return [waiting.pop()] if waiting else []

    def run() -> None:
        pool.run(claim, lambda group: str(group[0].scope), None, on_result=delivered.append, stopping=stop.is_set)

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            run()
    waiting += turns("b", "x")
    second = threading.Thread(target=run, daemon=True)
    second.start()
    second.join(SECONDS)
    stop.set()
    assert delivered == ["b"]
