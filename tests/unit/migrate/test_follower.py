"""What the secondary gets, misses and is repaired with; time is simulated, and nothing runs in the background."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest

from graphmem.background import BackgroundJob
from graphmem.errors import BackendUnavailable, InvalidInput, SchemaTooNew, StoreFull, StoreMoved
from graphmem.migrate.backend import DualWriteBackend, following_backend
from graphmem.migrate.follower import Follower, _GatheringJob  # pyright: ignore[reportPrivateUsage]
from graphmem.migrate.service import Migration
from graphmem.migrate.tokens import SHADOW, is_equal, put_token, repair_token
from graphmem.migrate.verify import differences_of, verify
from graphmem.models import (
    FORGETTING,
    Alias,
    Changes,
    EdgeExpiry,
    EntityQuery,
    EpisodeEnd,
    EpisodeExpiry,
    IndexEntry,
    JobState,
    ProcessingResult,
    RecallQuery,
    Removal,
    Scope,
    new_id,
)
from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend
from graphmem.testing.base import contents
from graphmem.testing.merges import mention
from graphmem.testing.rows import (
    day,
    edge,
    edge_id,
    entity,
    entity_id,
    episode,
    episode_id,
    home,
    new_world,
    put_entities,
    put_episodes,
    put_graph,
    put_recalls,
    recall_trace,
    scope_of,
)
from graphmem.upkeep.scope_rows import Row, RowKind, to_json
from graphmem_memory import MemoryBackend
from tests.unit.migrate.processes import open_process, sleep_on


class Time:
    """A clock that goes on while somebody waits."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


class Unreliable:
    """A secondary that fails while `error` is set."""

    def __init__(self, url: str) -> None:
        self.error: Exception | None = None
        self.calls = 0
        self._url = url

    def open(self) -> GraphBackend:
        if isinstance(self.error, SchemaTooNew):
            raise self.error
        store = open_backend(self._url)
        write = store.write

        def failing(*args: Any) -> None:
            self.calls += 1
            if self.error is not None:
                raise self.error
            write(*args)

        store.write = failing  # type: ignore[method-assign]
        return store


class World:
    """Two stores in a migration, and a process that writes to them."""

    def __init__(self, name: str) -> None:
        self.urls = f"memory://{name}-a", f"memory://{name}-b"
        self.time = Time()
        self.secondary = Unreliable(self.urls[1])
        self.migration = Migration.open(*self.urls, open_backend)
        cast("Any", self.migration)._sleep = self.time.sleep
        self.migration.advance("copy")
        self.migration.copy()
        self.process = self.opened()

    def opened(self) -> GraphBackend:
        """Return the store as another process has it."""
        return open_process(self.urls[0], self.secondary.open, self.time.now)

    def work(self, store: GraphBackend | None = None) -> None:
        """Let the background of a process run until it has nothing to do."""
        follower: Follower = cast("Any", store or self.process)._follower
        while (pause := follower.work()) is not None:
            self.time.seconds += pause

    def is_equal(self) -> bool:
        """Return whether the stores have the same rows, and know it."""
        source, target = self.migration.source, self.migration.target
        same = contents(source, home()) == contents(target, home())
        return same and is_equal(source, target, home())


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(BackgroundJob, "wake", sleep_on)
    monkeypatch.setattr("graphmem.migrate.backend._CLOSING", 0.0)  # or it waits for a background that does nothing
    with new_world():
        there = World(tmp_path.name)
        put_graph(there.process, edge(1, 1, 2, retrieval_count=2.0, last_retrieved_at=day(0)))
        put_episodes(there.process, 1)
        there.migration.settle()
        cast("Any", there.process)._follower._pending.clear()
        yield there
        there.process.close()


CHANGES: dict[str, Callable[[GraphBackend], object]] = {
    "write": lambda store: put_entities(store, entity(9)),
    "add_episodes": lambda store: store.add_episodes(home(), [episode(9)]),
    "known episode": lambda store: store.add_episodes(
        home(), [episode(8, external_id="x"), episode(9, external_id="x")]
    ),
    "record_retrievals": lambda store: store.record_retrievals([home()], [edge_id(1)], day(9)),
    "decay_retrievals": lambda store: store.decay_retrievals(
        home(), rate=0.1, idle_since=day(9), since=None, now=day(10)
    ),
    "reset_index": lambda store: store.reset_index(home()),
    "clear": lambda store: store.clear(home()),
    "write_unless_erased": lambda store: store.write_unless_erased(
        home(), Changes(removals=(Removal("edge", edge_id(1)),)), since=""
    ),
    "atomic": lambda store: store.atomic(lambda: [put_entities(store, entity(n)) for n in (8, 9)]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_secondary_gets_each_kind_of_change(here: World, name: str) -> None:
    CHANGES[name](here.process)
    assert not is_equal(here.migration.source, here.migration.target, home())
    here.work()
    assert here.is_equal()


@pytest.mark.parametrize("name", CHANGES)
def test_a_copy_repairs_each_kind_of_change(here: World, name: str) -> None:
    CHANGES[name](here.process)
    here.migration.settle()
    assert here.is_equal()


def test_the_ends_that_a_fact_had_when_it_was_retrieved_are_counted_in_the_secondary(here: World) -> None:
    here.process.record_retrievals([home()], [edge_id(1)], day(9))
    put_graph(here.process, edge(1, 1, 3))
    here.work()
    assert here.is_equal()


def test_the_secondary_gets_nothing_of_a_nested_transaction_that_was_undone(here: World) -> None:
    store = here.process

    def inner() -> None:
        put_entities(store, entity(8))
        raise ZeroDivisionError

    def outer() -> None:
        put_entities(store, entity(9))
        with pytest.raises(ZeroDivisionError):
            store.atomic(inner)

    store.atomic(outer)
    here.work()
    assert here.is_equal()
    found = here.migration.target.get_entities([home()], [entity_id(8), entity_id(9)])
    assert list(found) == [entity_id(9)]


def test_a_write_that_is_refused_leaves_the_secondary_as_it_is(here: World) -> None:
    with pytest.raises(InvalidInput):
        here.process.write(home(), Changes(episode_expiries=(EpisodeExpiry(episode_id(7), None),)))
    here.work()
    assert here.is_equal()


@pytest.mark.parametrize("error", [BackendUnavailable("away"), StoreFull("full"), SchemaTooNew("newer")], ids=str)
def test_a_secondary_that_fails_for_ten_minutes_is_repaired_and_not_felt(here: World, error: Exception) -> None:
    here.secondary.error = error
    cast("Any", here.process)._follower._secondary = None
    for minute in range(10):
        for turn in range(150):  # more than are kept apart
            put_episodes(here.process, 100 + 150 * minute + turn)
        with pytest.raises(type(error)):
            here.work()
        here.time.sleep(60)
    here.secondary.error = None
    assert len(cast("Any", here.process)._follower._pending[home()]) == 1000
    before = here.time.seconds
    here.work()
    assert here.is_equal()
    assert here.time.seconds - before < 15.0  # nothing was repaired
    assert here.migration.target.stats(home()).episodes == 1501


def test_changes_that_were_joined_are_transferred_although_a_repair_has_brought_some_of_them(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmem.migrate.follower._PENDING", 2)
    pending = cast("Any", here.process)._follower._pending
    for n in (3, 4, 5, 6):
        put_entities(here.process, entity(n))
        if n == 4:
            here.migration.settle()
    first, last = (batch.version for batch in pending[home()])
    assert (first.number - first.first, last.number - last.first) == (2, 0)
    before = here.time.seconds
    here.work()
    assert here.is_equal()
    assert here.time.seconds - before < 15.0  # nothing was repaired


@contextmanager
def first_change(tmp_path: Path) -> Generator[tuple[Migration, GraphBackend], None, None]:
    """Yield a migration that isn't copied yet, and a store in which a process has changed a scope."""
    with new_world():
        urls = f"memory://{tmp_path.name}-a", f"memory://{tmp_path.name}-b"
        with closing(open_backend(urls[0])) as before:
            put_entities(before, entity(1))
        migration = Migration.open(*urls, open_backend)
        migration.advance("copy")
        with closing(following_backend(open_backend(urls[0]), open_backend)) as store:
            put_entities(store, entity(2))
            yield migration, store


def test_the_first_change_of_a_scope_brings_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BackgroundJob, "wake", sleep_on)
    with first_change(tmp_path) as (migration, store):
        assert cast("Any", store)._follower.work() is None
        assert migration.copy() == 0
        assert contents(migration.source, home()) == contents(migration.target, home())


def test_the_first_change_of_a_large_scope_waits_for_its_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BackgroundJob, "wake", sleep_on)
    monkeypatch.setattr("graphmem.migrate.follower._SMALL", 1)
    with first_change(tmp_path) as (migration, store):
        assert cast("Any", store)._follower.work() is not None
        assert migration.target.stats(home()).entities == 0
        assert migration.copy() == 1
        assert cast("Any", store)._follower.work() is None
        assert contents(migration.source, home()) == contents(migration.target, home())


def test_changes_reach_the_secondary_in_one_write_with_their_token(here: World) -> None:
    put_episodes(here.process, 2, 3, 4)
    here.work()
    before = here.secondary.calls
    ends = tuple(EpisodeEnd(episode_id(n), day(n)) for n in (2, 3, 4))
    here.process.write(home(), Changes(entities=(entity(9),), episode_ends=ends))
    here.process.write(home(), Changes(results=tuple(ProcessingResult(episode_id(n), day(9)) for n in (2, 3, 4))))
    here.work()
    assert here.secondary.calls == before + 1
    assert here.is_equal()


def test_no_caller_calls_the_secondary(here: World) -> None:
    calls = here.secondary.calls
    for name, change in CHANGES.items():
        if name != "atomic":
            change(here.process)
    assert here.secondary.calls == calls


def test_what_a_killed_process_left_out_is_repaired_by_the_next_that_writes(here: World) -> None:
    put_entities(here.process, entity(8))  # and is killed before the secondary has it
    other = here.opened()
    put_entities(other, entity(9))
    before = here.time.seconds
    here.work(other)
    assert here.is_equal()
    assert here.time.seconds - before >= 15.0  # it has waited for the other process
    other.close()


def test_changes_that_threads_put_in_another_order_than_they_committed_them_are_applied(here: World) -> None:
    follower = cast("Any", here.process)._follower
    put, late = follower.put, list[Any]()
    follower.put = late.append
    put_entities(here.process, entity(8))
    here.process.write(home(), Changes(removals=(Removal("entity", entity_id(8)),)))
    put(late.pop())
    assert follower._follow(follower._adopted(), home()) == "waits for others"
    put(late.pop())
    before = here.time.seconds
    here.work()
    assert (here.is_equal(), follower._pending) == (True, {})
    assert here.time.seconds - before < 1.0  # nothing was repaired


def test_processes_that_write_in_turn_transfer_in_any_order(here: World) -> None:
    other = here.opened()
    for n in range(3, 9):
        put_entities(other if n % 2 else here.process, entity(n))
    ours, theirs = (cast("Any", store)._follower for store in (here.process, other))
    assert (ours.work(), here.is_equal()) == (5.0, False)
    assert (theirs.work(), here.is_equal()) == (None, True)
    assert here.migration.target.stats(home()).entities == 8
    here.time.seconds += 5
    assert ours.work() is None  # it has found that nothing is missing
    other.close()


def test_a_fact_is_transferred_with_the_rows_of_other_processes_that_it_refers_to(here: World) -> None:
    other = here.opened()
    put_entities(other, entity(7), entity(8))
    put_episodes(other, 7)
    put_graph(here.process, edge(7, 7, 8, episode_ids=(episode_id(7),)))
    assert cast("Any", here.process)._follower.work() is not None
    assert list(here.migration.target.get_edges([home()], [edge_id(7)])) == [edge_id(7)]
    here.work(other)
    assert here.is_equal()
    other.close()


def test_changes_from_before_a_removal_of_the_scope_do_not_wait(here: World) -> None:
    other = here.opened()
    put_entities(other, entity(7))
    here.process.clear(home())
    here.work()
    before = here.time.seconds
    here.work(other)
    assert here.is_equal()
    assert here.time.seconds - before < 15.0
    other.close()


def test_a_trace_is_transferred_with_the_rows_of_other_processes_that_it_names(here: World) -> None:
    other = here.opened()
    put_graph(other, edge(7, 7, 8))
    put_entities(other, entity(9))
    put_recalls(here.process, recall_trace(1, seeds=[9], facts=[(7, 8)]))
    assert cast("Any", here.process)._follower.work() is not None
    assert len(list(here.migration.target.all_recalls([home()], RecallQuery()))) == 1
    here.work(other)
    assert here.is_equal()
    other.close()


def test_a_mention_that_is_removed_and_stored_again_has_its_new_values(here: World) -> None:
    store = here.process
    store.write(home(), Changes(mentions=(mention(1, 1).changed(surface="before"),)))
    here.work()
    store.write(home(), Changes(removals=(Removal("mention", entity_id(1), episode_id(1)),)))
    store.write(home(), Changes(mentions=(mention(1, 1).changed(surface="after"),)))
    here.work()
    assert here.is_equal()


def test_a_fact_takes_the_key_of_one_that_ended_in_the_same_batch(here: World) -> None:
    store, key = here.process, edge(9, 1, 2, relation="likes")
    put_graph(store, key)
    here.work()
    store.write(home(), Changes(expiries=(EdgeExpiry(key.id, day(5), day(5)),)))
    put_graph(store, edge(8, 1, 2, relation="likes"))  # is read first, by its id
    cast("Any", store)._follower.work()  # once: with the ended fact first, nothing is in conflict
    assert here.is_equal()


def test_only_what_depends_on_later_changes_of_another_process_waits(here: World) -> None:
    other = here.opened()
    name = entity(2).canonical_name
    put_entities(other, entity(2, canonical_name="released"))
    put_entities(here.process, entity(7))
    put_entities(here.process, entity(8, canonical_name=name))  # is still taken in the secondary
    ours = cast("Any", here.process)._follower
    assert ours._follow(ours._adopted(), home()) == "done"
    assert [batch.changed.keys for batch in ours._pending[home()]] == [
        {("entity", entity_id(8)), ("alias", name, "person")}
    ]
    here.work(other)
    before = here.time.seconds
    here.work()
    assert here.is_equal()
    assert here.time.seconds - before < 15.0  # nothing was repaired
    other.close()


def test_an_entity_that_is_removed_and_stored_again_has_no_rows_of_the_former_one(here: World) -> None:
    here.process.write(home(), Changes(removals=(Removal("entity", entity_id(1)),)))
    put_entities(here.process, entity(1))
    here.work()
    assert here.is_equal()
    assert here.migration.target.stats(home()).edges == 0


def erase(store: GraphBackend) -> None:
    """Remove an entity as an erasure does."""
    state = JobState(FORGETTING, begun_at=day(9), cursor=new_id())
    store.write(
        home(), Changes(removals=(Removal("edge", edge_id(1)), Removal("entity", entity_id(1))), job_states=(state,))
    )


@pytest.fixture
def scrubbed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return whether the erased entity was gone at each time that a store was scrubbed."""
    found: list[bool] = []

    def scrub(store: MemoryBackend) -> bool:
        found.append(not store.get_entities([home()], [entity_id(1)]))
        return True

    monkeypatch.setattr(MemoryBackend, "scrub", scrub)
    return found


def test_the_secondary_is_scrubbed_once_an_erasure_has_reached_it(here: World, scrubbed: list[bool]) -> None:
    other = here.opened()
    put_entities(other, entity(8))  # isn't transferred yet
    erase(here.process)
    here.process.scrub()
    assert scrubbed == [True]
    assert cast("Any", here.process)._follower.work() is not None
    assert scrubbed == [True, True]
    here.work(other)
    assert (here.is_equal(), scrubbed) == (True, [True, True])
    put_entities(here.process, entity(7))
    here.work()
    assert scrubbed == [True, True]
    other.close()


@pytest.mark.parametrize("how", ["another process", "command", "repair", "clear"])
def test_an_erasure_of_a_killed_process_is_scrubbed_by_the_next(here: World, scrubbed: list[bool], how: str) -> None:
    if how == "clear":
        here.process.clear(home())
    else:
        erase(here.process)
    follower = cast("Any", here.process)._follower
    if how in ("another process", "command"):
        follower._follow(follower._adopted(), home())  # and it is killed
        assert scrubbed == []
    if how == "another process":
        other = here.opened()
        put_entities(other, entity(8))
        here.work(other)
        other.close()
    else:
        here.migration.copy()
    assert scrubbed == [True]
    here.migration.copy()
    assert scrubbed == [True]


def test_a_differing_shadow_read_is_counted_by_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BackgroundJob, "wake", sleep_on)
    with new_world():
        there = World(tmp_path.name)
        put_entities(there.process, entity(1))
        there.work()
        store = following_backend(open_backend(there.urls[0]), open_backend, shadow_share=1.0)
        follower: Follower = cast("Any", store)._follower
        store.find_entities([home()], EntityQuery())
        follower.work()
        assert differences_of(there.migration.source.find_job_state(home(), SHADOW)) == {}
        # rows that changed behind the back of the migration
        target = there.migration.target
        target.write(home(), Changes(removals=(Removal("entity", entity_id(1)),)))
        store.find_entities([home()], EntityQuery())
        store.find_aliases([home()], [entity_id(1)])
        store.find_entities([home()], EntityQuery())
        store.expand([home()], [entity_id(1)], hops=1)
        store.expand([home()], [entity_id(2)], hops=1)
        follower.work()
        counted = {"expand": 1, "find_aliases": 1, "find_entities": 2}
        assert differences_of(there.migration.source.find_job_state(home(), SHADOW)) == counted
        assert there.migration.status().differences == counted
        store.close()
        there.process.close()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda: Changes(entities=(entity(7),)), ["entity: 2 rows in the primary", "the checksums differ"]),
        (lambda: Changes(edges=(edge(1, 1, 2, confidence=0.5),)), ["the checksums differ"]),
    ],
    ids=["one more", "another value"],
)
def test_a_comparison_tells_rows_that_differ(here: World, change: Callable[[], Changes], told: list[str]) -> None:
    ends, scope = here.migration.ends(), home()
    assert verify(*ends, [scope], sleep=here.time.sleep).is_equal
    here.migration.target.write(scope, change())
    found = verify(*ends, [scope], sleep=here.time.sleep).differences
    assert [line.removeprefix(f"{scope}: ").split(", ")[0] for line in found] == told


def test_a_comparison_tells_questions_with_other_results_and_scopes_that_are_behind(here: World) -> None:
    ends, scope = here.migration.ends(), home()
    results = {id(ends[0]): (["a", "b"], ["c"]), id(ends[1]): (["b", "a"], ["c"])}
    found = verify(*ends, [scope], lambda store, _scope, _question: results[id(store)], 1, here.time.sleep)
    assert (found.is_equal, found.questions, found.recalls, found.searches) == (False, 1, 0, 1)
    assert [line.split(" about ")[0] for line in found.differences] == [f"{scope}: a recall"]
    put_entities(here.process, entity(9))
    behind = verify(*ends, [scope], sleep=here.time.sleep)
    assert (behind.is_equal, behind.skipped) == (False, (str(scope),))


def test_a_comparison_tells_its_progress_and_serializes_only_what_a_checksum_has(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    kinds: set[str] = set()

    def recorded(kind: RowKind, row: Row) -> str:
        kinds.add(kind)
        return to_json(kind, row)

    monkeypatch.setattr("graphmem.migrate.verify.to_json", recorded)
    monkeypatch.setattr("graphmem.migrate.verify.PAGE", 2)
    for store in here.migration.ends():
        store.write(home(), Changes(index=(IndexEntry(kind="name", key="Oslo"),)))

    def nothing(_store: GraphBackend, _scope: Scope, _question: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return (), ()

    done = verify(*here.migration.ends(), [home()], nothing, 1, here.time.sleep, read.append)
    assert (done.is_equal, done.questions, done.rows["index"]) == (True, 1, 1)
    assert (len(read) > 2, sum(read) > 2 * sum(done.rows.values())) == (True, True)
    assert "index" not in kinds


def test_a_copy_takes_as_long_as_its_rows_per_second_say(tmp_path: Path) -> None:
    source, target = (f"memory://{tmp_path.name}-{name}" for name in "ab")
    clock, begun = Time(), list[float]()

    def told(_: int) -> None:
        begun.append(clock.seconds)

    with new_world(), closing(open_backend(source)) as store:
        put_episodes(store, *range(1200))
        with closing(Migration.open(source, target, open_backend)) as moved:
            cast("Any", moved)._sleep = clock.sleep
            moved.advance("copy")
            assert moved.copy(100.0, told) == 1
    assert clock.seconds == pytest.approx(12.0)
    assert begun[:3] == pytest.approx([0.0, 5.0, 10.0])


def test_a_repair_removes_what_is_too_much_and_replaces_what_differs(here: World) -> None:
    target = here.migration.target
    target.write(
        home(),
        Changes(
            edges=(edge(1, 1, 2, confidence=0.5),),
            index=(IndexEntry(kind="name", key="too much"),),
            job_states=(JobState("too much"), JobState("migrate", cursor="other")),
        ),
    )
    put_entities(target, entity(2, name="Other", canonical_name="other"), entity(7))
    put_episodes(target, 7)
    here.migration.settle()
    assert here.is_equal()
    assert [state.job for state in target.find_job_states(home())] == ["migrate"]
    assert list(target.all_entries(home())) == []


def test_a_repair_moves_keys_names_and_aliases_between_rows(here: World) -> None:
    """Rows that hold a unique key in the secondary lose it to rows with smaller ids, which are stored before them."""
    store, target = here.process, here.migration.target
    put_graph(store, edge(9, 1, 2, relation="likes"), edge(8, 3, 4))
    here.migration.settle()
    assert here.is_equal()
    expiry = EdgeExpiry(edge_id(9), valid_to=day(5), expired_at=day(5))
    store.write(home(), Changes(expiries=(expiry,), edges=(edge(2, 1, 2, relation="likes"),)))
    renamed = [entity(4).changed(canonical_name="entity x"), entity(3).changed(canonical_name=entity(4).canonical_name)]
    store.write(home(), Changes(entities=(renamed[0],)))
    store.write(home(), Changes(entities=(renamed[1],)))
    alias = Alias(alias="somebody", entity_type=entity(1).entity_type, entity_id=entity_id(2))
    target.write(home(), Changes(aliases=(alias,)))
    store.write(home(), Changes(aliases=(alias.changed(entity_id=entity_id(1)),)))
    here.migration.settle()
    assert here.is_equal()


def test_a_store_without_a_migration_asks_as_before() -> None:
    store = open_backend("memory://")
    asked: list[str] = []

    class Counting:
        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            return getattr(store, name)

    with closing(DualWriteBackend(cast("GraphBackend", Counting()), open_backend)) as following:
        asked.clear()
        with new_world():
            put_entities(cast("GraphBackend", following), entity(1))
            cast("GraphBackend", following).stats(home())
        assert asked == ["write", "stats"]


def test_a_write_that_began_before_its_process_heard_of_the_migration_has_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BackgroundJob, "wake", sleep_on)
    with new_world():
        urls = f"memory://{tmp_path.name}-a", f"memory://{tmp_path.name}-b"
        primary = open_backend(urls[0])
        write, begun, go_on = primary.write, threading.Event(), threading.Event()

        def late(scope: Scope, changes: Changes) -> None:
            if changes.entities and changes.entities[0].id == entity_id(1) and not begun.is_set():
                begun.set()
                go_on.wait(30)
            write(scope, changes)

        primary.write = late  # type: ignore[method-assign]
        store = following_backend(primary, open_backend)
        migration = Migration.open(*urls, open_backend)
        first = threading.Thread(target=put_entities, args=(store, entity(1)))
        first.start()
        assert begun.wait(30)
        migration.advance("copy")
        second = threading.Thread(target=put_entities, args=(store, entity(2)))
        second.start()
        second.join(0.3)
        assert second.is_alive()  # it waits for the other one, which doesn't know yet
        go_on.set()
        first.join(30)
        second.join(30)
        cast("Any", store)._follower.work()
        assert contents(migration.source, home()) == contents(migration.target, home())
        assert migration.target.stats(home()).entities == 2
        store.close()


def test_a_process_that_cannot_open_the_new_store_is_refused_and_writes_to_neither(here: World) -> None:
    here.migration.advance("cutover")

    def refuse(url: str) -> GraphBackend:
        raise BackendUnavailable(f"{url}: no password")

    with pytest.raises(BackendUnavailable, match="no password"):
        following_backend(open_backend(here.urls[0]), refuse)
    stale = open_backend(here.urls[0])
    with pytest.raises(StoreMoved):
        put_entities(stale, entity(9))


def test_a_repair_reads_the_rows_of_the_secondary_once(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    target, calls = here.migration.target, list[str]()

    def count(name: str, read: Callable[..., Any]) -> None:
        def counted(*args: Any, **kwargs: Any) -> Any:
            calls.append(name)
            return read(*args, **kwargs)

        monkeypatch.setattr(target, name, counted)

    for name in ("all_episodes", "all_entities", "all_edges"):
        count(name, getattr(target, name))
    put_entities(here.process, entity(9))
    put_episodes(here.process, 9)
    here.migration.settle()
    assert Counter(calls) == {"all_episodes": 2, "all_entities": 2, "all_edges": 2}  # one only asks if there are any
    assert here.is_equal()


def test_a_store_that_lags_is_repaired_before_writers_wait_for_the_cutover(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, found = here.migration.source, list[bool]()
    mark = source.set_move

    def marking(*args: Any, **kwargs: Any) -> bool:
        found.append(here.is_equal())
        return mark(*args, **kwargs)

    monkeypatch.setattr(source, "set_move", marking)
    put_entities(here.process, entity(9))
    here.migration.advance("cutover")
    assert found[0]


def test_a_scope_is_not_repaired_while_a_process_applies_its_changes(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower = cast("Any", here.process)._follower
    monkeypatch.setattr("graphmem.migrate.follower._AT_ONCE", 1)

    def repaired(*_: object) -> None:
        pytest.fail("it was repaired")

    monkeypatch.setattr("graphmem.migrate.service.repair", repaired)
    for n in range(10, 30):
        put_entities(here.process, entity(n))

    def applying(_seconds: float) -> None:
        if follower._pending:
            follower._follow(here.migration.target, home())

    cast("Any", here.migration)._sleep = applying
    here.migration.settle()
    assert here.is_equal()


@pytest.mark.parametrize("what", ["late", "all rows"])
def test_an_idle_process_does_not_repair_the_store_that_has_taken_over(here: World, what: str) -> None:
    follower: Follower = cast("Any", here.process)._follower
    if what == "late":
        for n in (7, 8):  # after the second, it watches for changes that others don't transfer
            put_entities(here.process, entity(n))
            follower.work()
    else:
        here.process.reset_index(home())  # waits to be repaired
    here.migration.advance("cutover")
    with closing(following_backend(open_backend(here.urls[1]), open_backend)) as other:
        put_entities(other, entity(9))  # not transferred: nothing runs in the background
        for _ in range(10):
            here.time.sleep(5.0)
            follower.work()
        assert other.get_entities([home()], [entity_id(9)])


def test_an_idle_process_of_the_new_store_does_not_repair_the_old_one_after_a_rollback(here: World) -> None:
    here.migration.advance("cutover")
    put_entities(here.process, entity(7))  # follows to the new store
    follower = cast("Any", here.process)._follower
    follower._now = here.time.now
    follower.work()
    put_entities(here.process, entity(8))
    follower.work()
    here.migration.advance("rollback")
    with closing(following_backend(open_backend(here.urls[0]), open_backend)) as other:
        put_entities(other, entity(9))
        for _ in range(10):
            here.time.sleep(5.0)
            follower.work()
        assert other.get_entities([home()], [entity_id(9)])


def test_changes_are_joined_only_with_the_one_that_follows(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphmem.migrate.follower._PENDING", 3)
    follower = cast("Any", here.process)._follower
    put, late = follower.put, list[Any]()
    for n in range(3, 9):
        follower.put = late.extend if n == 4 else put
        put_entities(here.process, entity(n))
    follower.work()
    put(late)
    here.work()
    assert here.is_equal()


@pytest.mark.parametrize("error", [BackendUnavailable("it is away"), InvalidInput("a value is too long")], ids=type)
def test_a_repair_that_failed_is_shown_and_repeated(
    here: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    follower = cast("Any", here.process)._follower
    here.process.reset_index(home())
    put_episodes(here.process, 2)
    secondary = follower._adopted()
    add = secondary.add_episodes

    def failing(*_: Any) -> None:
        raise error

    monkeypatch.setattr(secondary, "add_episodes", failing)
    with suppress(BackendUnavailable):
        follower.work()
    assert [str(error) in told for _, well, told in here.process.diagnose() if not well] == [True]
    monkeypatch.setattr(secondary, "add_episodes", add)
    here.work()
    assert (here.is_equal(), follower.error) == (True, None)


def test_a_failed_repair_is_left_to_the_process_that_repairs_the_scope(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower = cast("Any", here.process)._follower
    here.process.reset_index(home())

    def failing(_: object) -> None:
        raise BackendUnavailable("it is away")

    with monkeypatch.context() as patched, suppress(BackendUnavailable):
        patched.setattr("graphmem.migrate.copy._Copy.run", failing)
        follower.work()
    follower.work()
    put_token(here.migration.target, home(), repair_token(here.migration.target))
    here.time.sleep(60.0)
    follower.work()
    assert follower.error is None
    assert not is_equal(here.migration.source, here.migration.target, home())


def test_a_process_that_slept_through_a_rollback_and_a_cancel_uses_the_old_store(here: World) -> None:
    here.migration.advance("cutover")
    put_entities(here.process, entity(8))
    here.migration.advance("rollback")
    here.migration.advance("cancel")
    put_entities(here.process, entity(9))
    assert here.migration.source.get_entities([home()], [entity_id(9)])
    with pytest.raises(StoreMoved, match="incomplete copy"):
        following_backend(open_backend(here.urls[1]), open_backend)


def test_a_scope_that_begins_during_a_cutover_is_no_error(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    scopes, calls, new = here.migration.scopes, list[int](), scope_of("new")

    def growing() -> list[Scope]:
        calls.append(1)
        if len(calls) == 2:  # between the two readings before writers wait
            put_entities(here.process, entity(9, new))
        return scopes()

    monkeypatch.setattr(here.migration, "scopes", growing)
    here.migration.advance("cutover")
    assert here.migration.target.get_entities([new], [entity_id(9)])


@pytest.mark.parametrize(("pause", "hurries"), [(60.0, True), (0.01, False)])
def test_changes_are_gathered_until_callers_pause_or_a_cutover_waits(
    monkeypatch: pytest.MonkeyPatch, pause: float, *, hurries: bool
) -> None:
    ran = threading.Event()
    monkeypatch.setattr("graphmem.migrate.follower._PAUSE", pause)
    monkeypatch.setattr("graphmem.migrate.follower._GATHER", 60.0)
    monkeypatch.setattr("graphmem.migrate.follower._LONGEST_REST", 60.0)
    job = _GatheringJob("test", ran.set)
    job.wake()
    try:
        if hurries:
            assert not ran.wait(0.1)
            job.hurry()
        assert ran.wait(30)
    finally:
        assert job.stop(30)
