"""`graphmem worker`: several at once, ended, killed, and what they say about themselves."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from shell import GRAPHMEM
from toy import ToyExtractor

from graphmem import GraphMemory
from graphmem.errors import InvalidInput
from graphmem.models import IndexCursor, utc_now
from graphmem.protocols import Extraction, ExtractionRequest
from graphmem.registry import open_backend
from graphmem.testing.rows import home
from graphmem.worker import WorkerState

SECONDS = 120
TURNS = [(f"Person {n} knows Person {n + 1}.", f"session {n % 6}") for n in range(60)]


def recorded(folder: Path) -> str:
    """Write what the extractor says of each turn, and return the option that names it."""
    file = folder / "recorded.jsonl"
    lines = [
        {"text": text, "edges": [[f"Person {n}", "knows", f"Person {n + 1}"]]} for n, (text, _) in enumerate(TURNS)
    ]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    return f"recorded:{file}"


@contextmanager
def worker(url: str, *options: str, **variables: str) -> Generator[subprocess.Popen[str]]:
    command = [GRAPHMEM, "worker", "--store", url, "--scopes", str(home()), *options]
    environment = {**os.environ, "GRAPHMEM_EMBEDDINGS": "none", **variables}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it didn't happen in time"
        time.sleep(0.1)


def store(memory: GraphMemory) -> None:
    for n, (text, session) in enumerate(TURNS):
        memory.remember(text, session_id=session, external_id=f"turn {n}")


def is_indexed(memory: GraphMemory) -> bool:
    backend = memory._engine.backend  # pyright: ignore[reportPrivateUsage]
    [status] = backend.index_status([IndexCursor(memory.scope)])
    return status.entries and not status.waiting


def expect_each_fact_once(memory: GraphMemory) -> None:
    stats = memory.stats()
    assert (stats.pending_episodes, stats.failed_episodes) == (0, 0)
    facts = [fact for n in range(len(TURNS)) for fact in memory.facts(f"Person {n}") if fact.source == f"Person {n}"]
    assert Counter(fact.target for fact in facts) == {f"Person {n + 1}": 1 for n in range(len(TURNS))}
    assert all(len(set(fact.episode_ids)) == len(fact.episode_ids) == 1 for fact in facts)


@pytest.mark.full(durable_url="neo4j")
@pytest.mark.slow
def test_three_workers_extract_everything_once_and_end_cleanly(durable_url: str, tmp_path: Path) -> None:
    health = tmp_path / "health.json"
    check = [GRAPHMEM, "worker", "--check", "--health", str(health)]
    assert subprocess.run(check, capture_output=True, check=False).returncode == 1
    with GraphMemory.open(durable_url, extractor="none", embeddings="none", background=False) as memory:
        options = ("--extractor", recorded(tmp_path))
        with (
            worker(durable_url, *options, "--health", str(health)) as first,
            worker(durable_url, *options) as second,
            worker(durable_url, *options) as third,
        ):
            store(memory)
            wait_until(lambda: memory.stats().pending_episodes == 0)
            wait_until(lambda: health.exists() and json.loads(health.read_text("utf-8"))["state"] == "idle")
            assert subprocess.run(check, capture_output=True, check=False).returncode == 0
            for process in (first, second, third):
                process.send_signal(signal.SIGTERM)
            ends = [process.communicate(timeout=SECONDS) for process in (first, second, third)]
            assert [process.returncode for process in (first, second, third)] == [0, 0, 0]
            assert all("stopped" in said for _, said in ends)
        assert not health.exists()
        expect_each_fact_once(memory)


@pytest.mark.slow
def test_what_a_killed_worker_had_claimed_is_done_by_the_next(durable_url: str, tmp_path: Path) -> None:
    options = ("--extractor", recorded(tmp_path))
    with GraphMemory.open(durable_url, extractor="none", embeddings="none", background=False) as memory:
        store(memory)
        with worker(durable_url, *options) as process:
            wait_until(lambda: memory.stats().pending_episodes < len(TURNS))
            process.send_signal(signal.SIGKILL)
            process.wait(SECONDS)
        with worker(durable_url, *options):
            wait_until(lambda: memory.stats().pending_episodes == 0)
        expect_each_fact_once(memory)


@pytest.mark.slow
def test_sigterm_in_the_middle_of_a_models_call_ends_the_worker_and_gives_its_claims_back(durable_url: str) -> None:
    pytest.importorskip("langchain_openai", reason="langchain-openai isn't installed (development group)")
    with (
        GraphMemory.open(durable_url, extractor="none", embeddings="none", background=False) as memory,
        socket.create_server(("127.0.0.1", 0)) as model,
    ):
        memory.remember("Alice knows Bob.", session_id="a")
        model.settimeout(SECONDS)
        address = f"http://127.0.0.1:{model.getsockname()[1]}/v1"
        variables = {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "none", "GRAPHMEM_LLM": "openai:small"}
        with worker(durable_url, "--extractor", "llm", "--grace", "0.5", **variables) as process:
            connection, _ = model.accept()  # the model is asked, and never answers
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=SECONDS)
            connection.close()
        assert (process.returncode, "claimed episodes were released" in said) == (0, True)
        assert time.monotonic() - began < SECONDS / 2
        store = open_backend(durable_url)
        owners = [owner for owner in store.claim_owners(utc_now()) if f":{process.pid}:" in owner]
        store.close()
        assert (owners, memory.stats().pending_episodes) == ([], 1)


class WaitsForTheOther(ToyExtractor):
    """An extractor whose first call ends only when the other worker has extracted everything."""

    def __init__(self, asked: threading.Event, go_on: threading.Event) -> None:
        super().__init__()
        self._asked, self._go_on = asked, go_on

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        self._asked.set()
        assert self._go_on.wait(SECONDS)
        return super().extract(requests)


@pytest.mark.server
def test_workers_with_clocks_an_hour_apart_store_nothing_twice_and_in_order(durable_url: str) -> None:
    asked, go_on = threading.Event(), threading.Event()
    slow, ahead = WaitsForTheOther(asked, go_on), ToyExtractor()
    with (
        GraphMemory.open(durable_url, extractor=slow, embeddings="none", background=False) as first,
        GraphMemory.open(
            durable_url,
            extractor=ahead,
            embeddings="none",
            background=False,
            clock=lambda: utc_now() + timedelta(hours=1),
        ) as second,
    ):
        turns = [f"Alice Stone | lives_in | {place}" for place in ("Ghent", "Lisbon", "Porto")]
        for n, text in enumerate(turns):
            first.remember(text, session_id="a", occurred_at=utc_now() - timedelta(days=9 - n))
        late = threading.Thread(target=first.admin.backfill)
        late.start()
        assert asked.wait(SECONDS)
        second.admin.backfill()  # to its clock the claims of the first have expired
        go_on.set()
        late.join(SECONDS)
        assert (slow.seen, ahead.seen) == (turns, turns)
        facts = first.history("Alice Stone")
        assert [(fact.target, len(fact.episode_ids)) for fact in facts] == [("Porto", 1), ("Lisbon", 1), ("Ghent", 1)]
        assert [fact.valid_to is None for fact in facts] == [True, False, False]


@pytest.mark.slow
def test_a_worker_leaves_what_other_scopes_store(durable_url: str, tmp_path: Path) -> None:
    options = ("--extractor", recorded(tmp_path), "--health-port", "0")
    with GraphMemory.open(durable_url, extractor="none", embeddings="none", background=False) as memory:
        other = memory.in_scope(f"{memory.scope}-other")
        other.add_facts([("Alice Stone", "knows", "Bob Fox")])
        store(other)
        other.remember("Alice Stone left.", expires_at=utc_now() - timedelta(days=1))
        before = other.stats()
        memory.remember(TURNS[0][0])
        memory.remember("Alice Stone left.", expires_at=utc_now() - timedelta(days=1))
        with worker(durable_url, *options, GRAPHMEM_COMMUNITY_REFRESH_INTERVAL="1"):
            wait_until(lambda: memory.stats().episodes == 1)
            wait_until(lambda: any(job.job == "communities" and job.done_at for job in memory.stats().upkeep))
            wait_until(lambda: is_indexed(memory))
        assert other.stats() == before
        assert not is_indexed(other)


def test_background_work_passes_over_scopes_that_are_not_served() -> None:
    with GraphMemory.open("memory://", extractor="none", embeddings="none", background_scopes=["served"]) as memory:
        served, other = memory.in_scope("served"), memory.in_scope("other")
        other.remember("I moved to Lisbon.")
        served.remember("I moved to Lisbon.")
        wait_until(lambda: is_indexed(served))
        assert not is_indexed(other)


def test_a_worker_needs_background_work(tmp_path: Path) -> None:
    with (
        GraphMemory.open("memory://", extractor="none", embeddings="none", background=False) as memory,
        pytest.raises(InvalidInput, match="background"),
    ):
        memory.admin.work(threading.Event())


def test_a_worker_serves_only_its_scopes() -> None:
    with GraphMemory.open("memory://", extractor=ToyExtractor(), embeddings="none") as memory:
        stopping = threading.Event()
        served, other = memory.in_scope("served"), memory.in_scope("other")
        states: list[str] = []

        def on_state(state: WorkerState) -> None:
            states.append(state.state)

        work = partial(memory.admin.work, stopping, scopes=["served"], seconds=0.01, on_state=on_state)
        thread = threading.Thread(target=work)
        thread.start()
        wait_until(lambda: bool(states))
        other.remember("Alice Stone | knows | Bob Fox")
        served.remember("Alice Stone | knows | Bob Fox")
        wait_until(lambda: served.stats().pending_episodes == 0)
        stopping.set()
        thread.join()
        assert other.stats().pending_episodes == 1
        assert {"idle", "working"} >= set(states[:-1])
        assert states[-1] == "stopped"
