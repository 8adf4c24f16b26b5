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
from typing import Any

import pytest
from toy import FAILS, ToyExtractor, read

from graphmem import Administration, ExtractorMisconfigured, Fact, GraphMemory, LoadReport, Receipt, Scope
from graphmem.ingest.queue import ExtractionQueue
from graphmem.protocols import Extraction, ExtractionRequest

GOOD = "Alice Stone | knows | Bob Miller"
NOT_ASYNC = {"open", "in_scope", "admin", "explorer", "scope"}
METHODS = [
    (part, name)
    for part in (GraphMemory, Administration)
    for name, method in sorted(vars(part).items())
    if name[0] != "_" and name not in NOT_ASYNC and not inspect.iscoroutinefunction(method)
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
WITHOUT_ARGUMENTS = "aflush aentities acommunities astats avisualize".split()
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


async def typed(memory: GraphMemory) -> None:
    """Is never run: type checkers see parameters and results of the async forms."""
    receipt: Receipt = await memory.aremember("hello", speaker="Maya")
    facts: tuple[Fact, ...] = await memory.afacts("Maya", limit=3)
    text: str = await memory.acontext("Where?", budget_tokens=100)
    done: LoadReport = await memory.admin.abackfill(5, failed=True)
    await memory.afacts(3)  # pyright: ignore[reportArgumentType]
    await memory.arecall("Where?", nonsense=1)  # pyright: ignore[reportCallIssue]
    del receipt, facts, text, done
