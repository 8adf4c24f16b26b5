"""Async code: every method has an async form, nothing of the application is held, and waiting costs no thread."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from toy import FAILS, ToyExtractor, read

from graphmem import (
    Administration,
    BackendUnavailable,
    ExtractorMisconfigured,
    Fact,
    GraphMemory,
    InvalidInput,
    LoadReport,
    Receipt,
    Scope,
    StoreFull,
)
from graphmem.ingest.queue import ExtractionQueue
from graphmem.protocols import Extraction, ExtractionRequest
from graphmem_sqlite import SQLiteBackend

GOOD = "Alice Stone | knows | Bob Miller"
NOT_ASYNC = {"open", "in_scope", "admin", "explorer", "scope", "settings"}
METHODS = [
    (part, name)
    for part in (GraphMemory, Administration)
    for name in dir(part)  # inherited ones, too
    if name[0] != "_" and name not in NOT_ASYNC and not inspect.iscoroutinefunction(getattr(part, name))
]


class Gate(ToyExtractor):
    """Reads several texts at once, as a model does: each waits until the gate is open."""

    concurrency = 4

    def __init__(self, *, is_open: bool = False, error: Exception | None = None) -> None:
        super().__init__()
        self.opened = threading.Event()
        self.running = self.most = 0
        self.order: list[str] = []
        self._lock = threading.Lock()
        self.error = error
        self.begun = threading.Semaphore(0)
        if is_open:
            self.opened.set()

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Count how many are under way."""
        [request] = requests
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
            self.order.append(request.episode.text)
        self.begun.release()
        self.opened.wait(30)
        with self._lock:
            self.running -= 1
        return [self.error or read(request.episode.text)]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., GraphMemory]]:
    """Return what opens memories, all closed in the end."""
    memories: list[GraphMemory] = []

    def open_one(**options: Any) -> GraphMemory:
        options = {"extractor": ToyExtractor(), "embeddings": "none", **options}
        memories.append(GraphMemory.open(f"memory://{tmp_path.name}", **options))
        return memories[-1]

    yield open_one
    for memory in memories:
        memory.close()


@pytest.mark.parametrize(("part", "name"), METHODS)
def test_every_public_method_has_an_async_form_with_the_same_parameters(part: type, name: str) -> None:
    method, form = getattr(part, name), getattr(part, f"a{name}")
    assert inspect.iscoroutinefunction(form)
    assert list(inspect.signature(form).parameters) == list(inspect.signature(method).parameters)
    assert (form.__name__, form.__doc__.partition("\n")[0]) == (f"a{name}", f"`{name}` for async code.")


CALLS: dict[str, tuple[Any, ...]] = {
    "aremember": (GOOD,),
    "aingest": ([GOOD],),
    "aadd_facts": ([("Ann Lee", "knows", "Bob Miller")],),
    "arecall": ("Alice Stone",),
    "asearch": ("Alice Stone",),
    "acontext": ("Alice Stone",),
    "afacts": ("Alice Stone",),
    "ahistory": ("Alice Stone",),
    "adiff": ("2020-01-01T00:00:00Z", "2030-01-01T00:00:00Z"),
    "aepisodes": ([],),
    "asession": ("none",),
}
WITHOUT_ARGUMENTS = "aflush asessions aentities acommunities astats avisualize".split()
ADMINISTRATION = (
    "abackfill adead_letters atraces arefresh_communities amerges aevict adecay achecksum ascopes adoctor areindex "
    "aentity_counts aclear"
).split()


@pytest.mark.parametrize("name", [*CALLS, *WITHOUT_ARGUMENTS, *ADMINISTRATION])
def test_an_async_form_returns_what_the_method_returns(opened: Callable[..., GraphMemory], name: str) -> None:
    memory = opened(background=False)
    memory.ingest([GOOD])
    arguments = CALLS.get(name, ())

    part = memory.admin if name in ADMINISTRATION else memory

    async def call() -> Any:
        return await getattr(part, name)(*arguments)

    expected = getattr(part, name[1:])(*arguments)
    assert type(asyncio.run(call())) is type(expected)


def test_a_memory_is_closed_at_the_end_of_async_with(tmp_path: Path) -> None:
    async def use() -> GraphMemory:
        async with GraphMemory.open(f"sqlite:///{tmp_path}/memory.db", extractor="none", embeddings="none") as memory:
            await memory.aremember("hello")
        return memory

    memory = asyncio.run(use())
    with pytest.raises(Exception, match="closed"):
        memory.remember("again")


def test_waiting_receipts_hold_no_thread_of_anybody(opened: Callable[..., GraphMemory]) -> None:
    gate = Gate()
    memory = opened(extractor=gate)

    async def run() -> tuple[int, list[bool]]:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        receipts = [await memory.aremember(f"{GOOD} {n}") for n in range(30)]
        waiting = [asyncio.ensure_future(wait_for(receipt)) for receipt in receipts]
        await asyncio.sleep(0)
        before = threading.active_count()
        await asyncio.wait_for(asyncio.to_thread(lambda: None), 10)  # the application's own pool is free
        assert await memory.astats()  # and so are the memory's threads
        more = threading.active_count() - before
        gate.opened.set()
        return more, await asyncio.gather(*waiting)

    more, settled = asyncio.run(run())
    assert settled == [True] * 30
    assert more <= 1 + 4 + 4  # the application's thread, readers, and what extracts


def queue_of(memory: GraphMemory) -> ExtractionQueue:
    return memory._engine.queue  # pyright: ignore[reportPrivateUsage]


async def wait_for(receipt: Receipt) -> bool:
    return await receipt


def test_a_receipt_is_done_when_the_episode_is_out_of_tries(opened: Callable[..., GraphMemory]) -> None:
    memory = opened(max_attempts=1)

    async def run() -> bool:
        return await (await memory.aremember(f"this {FAILS}"))

    assert asyncio.run(run())


def test_a_receipt_of_a_paused_queue_does_not_wait_for_ever(opened: Callable[..., GraphMemory]) -> None:
    memory = opened(extractor=Gate(is_open=True, error=ExtractorMisconfigured("HTTP 401")))

    async def run() -> bool:
        return await (await memory.aremember(GOOD))

    assert asyncio.run(run()) is False
    assert memory.flush() == 1
    assert memory.stats().queue.state == "paused"
    assert [check.ok for check in memory.admin.doctor() if check.name == "extraction"] == [False]


def test_another_process_sees_that_extraction_is_paused_and_why(opened: Callable[..., GraphMemory]) -> None:
    memory = opened(extractor=Gate(is_open=True, error=ExtractorMisconfigured("HTTP 401")), background=False)
    memory.remember(GOOD)
    memory.flush()
    state = opened(extractor="none").stats().queue
    assert (state.state, state.reason) == ("paused", "ExtractorMisconfigured: HTTP 401")


def test_a_key_that_becomes_valid_is_found_by_backfill(opened: Callable[..., GraphMemory]) -> None:
    gate = Gate(is_open=True, error=ExtractorMisconfigured("HTTP 401"))
    memory = opened(extractor=gate, background=False)
    memory.ingest([f"{GOOD} {n}" for n in range(10)])
    gate.error = None
    assert memory.flush() == 1
    assert memory.admin.backfill().extracted == 10
    assert memory.stats().queue.state == "running"


def test_tasks_that_are_cancelled_leave_at_once_and_what_they_began_is_kept(opened: Callable[..., GraphMemory]) -> None:
    gate = Gate()
    memory = opened(extractor=gate)

    async def run() -> float:
        receipt = await memory.aremember(GOOD)
        tasks: list[asyncio.Task[Any]] = [asyncio.create_task(wait_for(receipt)), asyncio.create_task(memory.aflush())]
        await asyncio.get_running_loop().run_in_executor(None, gate.begun.acquire)
        begun = time.monotonic()
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in ended)
        took = time.monotonic() - begun
        gate.opened.set()
        assert await receipt
        return took

    assert asyncio.run(run()) < 5
    assert memory.stats().active_edges == 1


def test_a_thousand_scopes_with_one_turn_each_are_extracted_in_parallel(tmp_path: Path) -> None:
    gate = Gate()
    gate.concurrency = 16
    with GraphMemory.open(f"memory://{tmp_path.name}", extractor=gate, embeddings="none", background=False) as memory:
        for n in range(1000):
            memory.in_scope(Scope("users", str(n))).remember(GOOD)
        queue = queue_of(memory)
        done = threading.Thread(target=queue.process)
        done.start()
        for _ in range(16):
            assert gate.begun.acquire(timeout=10)
        gate.opened.set()
        done.join()
        counts = {memory.in_scope(scope).stats().active_edges for scope in memory.admin.scopes()}
    assert (gate.most, counts) == (16, {1})


def test_turns_of_a_session_are_extracted_one_after_the_other_in_order(opened: Callable[..., GraphMemory]) -> None:
    gate = Gate(is_open=True)
    busy: set[str] = set()
    overlapping: list[str] = []
    extract = gate.extract

    def watched(requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        session = requests[0].episode.session_id or ""
        if session in busy:
            overlapping.append(session)
        busy.add(session)
        try:
            return extract(requests)
        finally:
            busy.discard(session)

    gate.extract = watched  # type: ignore[method-assign]
    memory = opened(extractor=gate, background=False)
    for n in range(60):
        memory.remember(f"Alice Stone | knows | Person {n:02d}", session_id=f"s{n % 3}")
    helpers = [threading.Thread(target=memory.flush) for _ in range(3)]
    for helper in helpers:
        helper.start()
    for helper in helpers:
        helper.join()
    assert overlapping == []
    numbers = [int(text[-2:]) for text in gate.order]
    assert all(a < b for k in range(3) for a, b in pairwise(n for n in numbers if n % 3 == k))
    assert memory.stats().pending_episodes == 0


def test_a_scope_with_much_to_do_does_not_hold_up_the_others(opened: Callable[..., GraphMemory]) -> None:
    gate = Gate(is_open=True)
    memory = opened(extractor=gate, background=False)
    for n in range(200):
        memory.remember(f"Alice Stone | knows | Person {n:03d}")
    memory.in_scope("small").remember("Carol Jones | knows | Dave Brown")
    queue_of(memory).notify(memory.admin.scopes())
    queue_of(memory).process()
    assert gate.order.index("Carol Jones | knows | Dave Brown") <= 2 * 2 * gate.concurrency


class HeldBack:
    """A memory whose store is locked by another writer, and the transactions that wait for it."""

    def __init__(self, memory: GraphMemory, monkeypatch: pytest.MonkeyPatch) -> None:
        self.memory = memory
        self.backend = memory._engine.backend  # pyright: ignore[reportPrivateUsage]
        self.transactions = 0
        self._begun, self._released = threading.Event(), threading.Event()
        held = threading.Event()

        def hold() -> None:
            held.set()
            self._released.wait(30)

        self._holder = threading.Thread(target=self.backend.atomic, args=(hold,))
        self._holder.start()
        assert held.wait(10)
        atomic = self.backend.atomic

        def counted(work: Callable[[], Any]) -> Any:
            self.transactions += 1
            self._begun.set()
            return atomic(work)

        monkeypatch.setattr(self.backend, "atomic", counted)

    async def first(self) -> asyncio.Task[Receipt]:
        """Return the task of a turn whose transaction waits for the lock."""
        task = asyncio.create_task(self.memory.aremember("the first one"))
        await asyncio.get_running_loop().run_in_executor(None, self._begun.wait, 10)
        return task

    def release(self) -> None:
        """Release the lock."""
        self._released.set()
        self._holder.join()


@pytest.fixture(params=["sqlite", "memory"])
def held_back(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldBack]:
    """Return a memory with a store that somebody writes to."""
    url = f"sqlite:///{tmp_path}/memory.db" if request.param == "sqlite" else f"memory://{tmp_path.name}"
    with GraphMemory.open(url, extractor="none", embeddings="none", background=False) as memory:
        held = HeldBack(memory, monkeypatch)
        yield held
        held.release()


def test_turns_that_wait_share_a_transaction_whatever_their_scopes(held_back: HeldBack) -> None:
    memories = [held_back.memory.in_scope(Scope("users", str(n))) for n in range(10)]

    async def run() -> list[Receipt]:
        first = await held_back.first()
        said = [asyncio.ensure_future(m.aremember(f"turn {n}", external_id=str(n))) for m in memories for n in range(8)]
        said += [asyncio.ensure_future(m.aremember("again", external_id="0")) for m in memories]
        await asyncio.sleep(0)
        held_back.release()
        await first
        return await asyncio.gather(*said)

    receipts = asyncio.run(run())
    assert held_back.transactions == 2
    assert [receipt.created for receipt in receipts] == [True] * 80 + [False] * 10
    for n, memory in enumerate(memories):
        ids = [receipt.episode_id for receipt in receipts[8 * n : 8 * n + 8]]
        assert [episode.text for episode in memory.episodes(ids)] == [f"turn {n}" for n in range(8)]
        assert receipts[80 + n].episode_id == ids[0]


@pytest.mark.parametrize("held_back", ["sqlite"], indirect=True)
def test_a_turn_that_cannot_be_stored_fails_alone(held_back: HeldBack) -> None:
    backend = cast("SQLiteBackend", held_back.backend)  # behind one that follows migrations

    async def run() -> list[Receipt | BaseException]:
        first = await held_back.first()
        texts = ["one", "", "x" * 1_000_000, "two"]
        said = [asyncio.ensure_future(held_back.memory.aremember(text)) for text in texts]
        await asyncio.sleep(0)
        pages = backend.database.writer.execute("PRAGMA page_count").fetchone()[0]
        backend.database.writer.execute(f"PRAGMA max_page_count = {pages + 50}")
        held_back.release()
        await first
        return await asyncio.gather(*said, return_exceptions=True)

    one, empty, long, two = asyncio.run(run())
    assert (type(empty), type(long)) == (InvalidInput, StoreFull)
    assert isinstance(one, Receipt)
    assert isinstance(two, Receipt)
    assert len(held_back.memory.episodes([one.episode_id, two.episode_id])) == 2


def test_a_turn_whose_task_is_cancelled_before_its_transaction_is_not_stored(held_back: HeldBack) -> None:
    async def run() -> None:
        first = await held_back.first()
        second = asyncio.create_task(held_back.memory.aremember("the second one"))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.sleep(0)  # the loop passes the cancellation on
        held_back.release()
        await first
        await held_back.memory.aremember("the third one")

    asyncio.run(run())
    assert held_back.memory.stats().episodes == 2


def test_a_call_that_is_cancelled_before_it_begins_is_not_made(opened: Callable[..., GraphMemory]) -> None:
    memory, release = opened(background=False), threading.Event()

    async def run() -> None:
        busy = [memory._engine.pools.submit("jobs", lambda: release.wait(30)) for _ in range(4)]  # pyright: ignore[reportPrivateUsage]
        task = asyncio.create_task(memory.aadd_facts([("Ann Lee", "knows", "Bob Miller")]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()
        assert all([await asyncio.wrap_future(call) for call in busy])
        await memory.aadd_facts([("Eve Moss", "knows", "Bob Miller")])

    asyncio.run(run())
    assert [entity.name for entity in memory.entities() if entity.name != "Bob Miller"] == ["Eve Moss"]


@pytest.mark.parametrize("held_back", ["sqlite"], indirect=True)
def test_a_call_that_had_begun_is_finished_though_its_task_was_cancelled(held_back: HeldBack) -> None:
    done = threading.Event()

    async def run() -> None:
        facts = [("Ann Lee", "knows", "Bob Miller")]
        task = asyncio.create_task(held_back.memory.aadd_facts(facts, on_progress=lambda _: done.set()))
        while not held_back.transactions:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not done.is_set()
        held_back.release()

    asyncio.run(run())
    assert done.wait(10)
    assert [fact.target for fact in held_back.memory.facts("Ann Lee")] == ["Bob Miller"]


def test_other_calls_run_while_several_tasks_serve_the_store(opened: Callable[..., GraphMemory]) -> None:
    memory, stopping = opened(), threading.Event()

    async def run() -> LoadReport:
        serving = [asyncio.create_task(memory.admin.awork(stopping, seconds=0.05)) for _ in range(5)]
        await asyncio.sleep(0)
        try:
            return await asyncio.wait_for(memory.aadd_facts([("Ann Lee", "knows", "Bob Miller")]), 10)
        finally:
            stopping.set()
            await asyncio.gather(*serving)

    assert asyncio.run(run()).edges == 1


def test_turns_of_a_session_keep_the_order_of_their_calls(held_back: HeldBack) -> None:
    memory, texts = held_back.memory, [f"turn {n}" for n in range(250)]

    async def run() -> None:
        first = await held_back.first()
        said = [asyncio.ensure_future(memory.aremember(text, session_id="s")) for text in texts]
        await asyncio.sleep(0)
        held_back.release()
        await asyncio.gather(first, *said)

    asyncio.run(run())
    assert [episode.text for episode in memory.session("s", limit=1000)] == texts
    assert held_back.transactions == 1 + 3


def test_turns_that_wait_while_the_memory_is_closed_are_stored_or_fail(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    memory = GraphMemory.open(url, extractor="none", embeddings="none")

    async def run() -> list[Receipt | BaseException]:
        said = [asyncio.ensure_future(memory.aremember(f"turn {n}")) for n in range(500)]
        await said[0]
        await memory.aclose()
        return await asyncio.gather(*said, return_exceptions=True)

    ended = asyncio.run(run())
    stored = [one.episode_id for one in ended if isinstance(one, Receipt)]
    assert all(isinstance(one, (Receipt, BackendUnavailable)) for one in ended)
    with GraphMemory.open(url, extractor="none", embeddings="none", background=False) as again:
        assert again.stats().episodes == len(again.episodes(stored)) == len(stored) > 0


def test_a_memory_is_closed_while_all_threads_for_long_calls_are_taken(tmp_path: Path) -> None:
    memory = GraphMemory.open(f"sqlite:///{tmp_path}/memory.db", extractor="none", embeddings="none")
    ended = threading.Event()

    async def run() -> None:
        pools = memory.admin._engine.pools  # pyright: ignore[reportPrivateUsage]
        jobs = [asyncio.ensure_future(pools.run("jobs", ended.wait)) for _ in range(8)]
        await asyncio.sleep(0.1)
        try:
            await asyncio.wait_for(memory.aclose(0), 10)
        finally:
            ended.set()
        await asyncio.gather(*jobs)

    asyncio.run(run())


async def typed(memory: GraphMemory) -> None:
    """Is never run: type checkers see parameters and results of the async forms."""
    receipt: Receipt = await memory.aremember("hello", speaker="Maya")
    facts: tuple[Fact, ...] = await memory.afacts("Maya", limit=3)
    text: str = await memory.acontext("Where?", budget_tokens=100)
    done: LoadReport = await memory.admin.abackfill(5, failed=True)
    await memory.afacts(3)  # pyright: ignore[reportArgumentType]
    await memory.arecall("Where?", nonsense=1)  # pyright: ignore[reportCallIssue]
    del receipt, facts, text, done
