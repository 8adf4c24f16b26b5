"""The server of a Neo4j store killed, frozen and restarted under an open memory: nothing acknowledged is lost."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from children import toy_text, toy_triples, toy_turns
from crashed import SCOPE, assert_graph_is_sound, assert_whole, wait_until
from toy import ToyExtractor

from graphmem import BackendUnavailable, GraphMemory
from graphmem.models import EpisodeQuery
from graphmem.protocols import Extraction, ExtractionRequest
from graphmem.registry import open_backend
from tests.neo4j_server import PASSWORD, Neo4jServer, NoServer
from tests.shared_servers import empty, unavailable

TURNS, TRIPLES = 60, 400
LONGEST_LIFE = 1.5  # seconds that a server lives after the first acknowledgement
# The server tells its clients to give up on it after two of these without a word.
NO_WORD = {"NEO4J_server_bolt_connection__keep__alive": "5s"}
GIVEN_UP_AFTER = 10.0 + 30.0 + 60.0  # then a try on a new connection takes 30 s; and the machine may be busy

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def server() -> Iterator[Neo4jServer]:
    try:
        server = Neo4jServer(NO_WORD, gds=False)
    except NoServer as error:
        unavailable(error)
    yield server.start()
    server.remove()


@pytest.fixture
def memory(server: Neo4jServer) -> Iterator[GraphMemory]:
    empty(server.url)
    with GraphMemory.open(server.url, extractor=ToyExtractor(), background=False, batch_size=10) as memory:
        yield memory


class Load:
    """What is loaded in a round, by every way in, and what of it was acknowledged."""

    def __init__(self, memory: GraphMemory, number: int) -> None:
        self._memory = memory
        self._name = str(number)
        self.remembered: set[str] = set()
        self.ingested = 0
        self.added = 0
        self.begun = threading.Event()

    def remember(self) -> None:
        """Remember turns one by one; those that were acknowledged are not said again."""
        for i in range(TURNS):
            text = toy_text(f"{self._name} remembered", i)
            self._memory.remember(text, external_id=f"{self._name}/remembered/{i}")
            self.remembered.add(text)
            self.begun.set()

    def ingest(self) -> None:
        """Ingest turns."""

        def acknowledged(received: int) -> None:
            self.ingested = max(self.ingested, received)
            self.begun.set()

        turns = toy_turns(f"{self._name} ingested", TURNS)
        self._memory.ingest(turns, on_progress=lambda progress: acknowledged(progress.received))

    def add_facts(self) -> None:
        """Add facts."""

        def acknowledged(received: int) -> None:
            self.added = max(self.added, received)
            self.begun.set()

        triples = toy_triples(f"{self._name} added", TRIPLES)
        self._memory.add_facts(triples, on_progress=lambda progress: acknowledged(progress.received))

    @property
    def turns(self) -> set[str]:
        """The texts of the turns that were acknowledged."""
        return self.remembered | {turn["text"] for turn in toy_turns(f"{self._name} ingested", self.ingested)}

    @property
    def spots(self) -> set[str]:
        """The objects of the facts that were acknowledged."""
        return {triple["object"] for triple in toy_triples(f"{self._name} added", self.added)}


def assert_told_without_password(error: BaseException, server: Neo4jServer) -> None:
    assert isinstance(error, BackendUnavailable)
    assert f"bolt://localhost:{server.bolt_port}" in str(error)
    assert PASSWORD not in str(error)


def assert_all_there(server: Neo4jServer, memory: GraphMemory, load: Load, earlier: set[str]) -> None:
    assert_whole(server.url, earlier | load.turns)
    spots = Counter(e.name for e in memory.entities(limit=10**6) if e.name.startswith("Spot "))
    held = Counter(f.target for p in range(7) for f in memory.facts(f"Person {p}", limit=10**6))
    assert load.spots <= spots.keys()
    assert {spot: held[spot] for spot in spots} == dict.fromkeys(spots, 1)


def test_what_was_acknowledged_outlives_kills_of_the_server_and_each_call_recovers_or_can_be_repeated(
    server: Neo4jServer, memory: GraphMemory, rounds: Callable[[int], int]
) -> None:
    chance = random.Random(5)
    acknowledged: set[str] = set()
    for number in range(rounds(30)):
        load = Load(memory, number)
        ways: list[Callable[[], None]] = [load.remember, load.ingest, load.add_facts]
        with ThreadPoolExecutor(len(ways)) as pool:
            calls: list[Future[None]] = [pool.submit(way) for way in ways]
            load.begun.wait(60)
            time.sleep(chance.uniform(0.0, LONGEST_LIFE))
            server.kill()
            server.restart()
        assert_all_there(server, memory, load, acknowledged)
        for way, call in zip(ways, calls, strict=True):
            if (error := call.exception()) is not None:
                assert_told_without_password(error, server)
                way()
        assert (len(load.remembered), load.ingested, load.added) == (TURNS, TURNS, TRIPLES)
        assert memory.flush(timeout=60) == 0
        assert_all_there(server, memory, load, acknowledged)
        acknowledged |= load.turns
    assert memory.stats().failed_episodes == 0
    assert_graph_is_sound(server.url)


def test_calls_to_a_server_that_stays_away_end_with_its_url_and_the_memory_is_of_use_when_it_is_back(
    server: Neo4jServer, memory: GraphMemory
) -> None:
    memory.add_facts([("Alice Stone", "knows", "Bob Miller")])
    calls: list[Callable[[], object]] = [
        lambda: memory.remember("Bob Miller | knows | Carol Jones"),
        lambda: memory.add_facts([("Bob Miller", "knows", "Carol Jones")]),
        lambda: memory.recall("Alice Stone"),
        lambda: open_backend(server.url, wait=2.0),
    ]
    server.kill()
    try:
        with ThreadPoolExecutor(len(calls)) as pool:
            errors = [future.exception(timeout=120) for future in [pool.submit(call) for call in calls]]
    finally:
        server.restart()
    for error in errors:
        assert error is not None
        assert_told_without_password(error, server)
    assert [fact.target for fact in memory.recall("Alice Stone")] == ["Bob Miller"]


def test_calls_to_a_frozen_server_end_instead_of_hanging(server: Neo4jServer, memory: GraphMemory) -> None:
    memory.add_facts([("Alice Stone", "knows", "Bob Miller")])
    calls: list[Callable[[], object]] = [
        lambda: memory.add_facts([("Bob Miller", "knows", "Carol Jones")]),
        lambda: memory.recall("Alice Stone"),
    ]
    server.pause()
    try:
        with ThreadPoolExecutor(len(calls)) as pool:
            begun = time.monotonic()
            errors = [future.exception(timeout=GIVEN_UP_AFTER) for future in [pool.submit(call) for call in calls]]
            took = time.monotonic() - begun
    finally:
        server.unpause()
    for error in errors:
        assert error is not None
        assert_told_without_password(error, server)
    assert took < GIVEN_UP_AFTER
    assert [fact.target for fact in memory.recall("Alice Stone")] == ["Bob Miller"]


def test_work_in_the_background_goes_on_by_itself_after_a_restart_until_the_queue_is_empty(server: Neo4jServer) -> None:
    empty(server.url)
    extractor = Held()
    with GraphMemory.open(server.url, extractor=extractor) as memory:
        texts = {turn["text"] for turn in toy_turns("behind", TURNS)}
        for text in sorted(texts):
            memory.remember(text)
        assert extractor.reached.wait(30)
        server.kill()
        extractor.may_go_on.set()
        server.restart()
        wait_until(lambda: memory.stats().pending_episodes == 0, seconds=120)
        wait_until(lambda: memory.stats().background == ())
    assert_whole(server.url, texts)
    store = open_backend(server.url)
    assert {e.attempts for e in store.find_episodes(SCOPE, EpisodeQuery(), limit=TURNS)} == {1}
    store.close()


class Held(ToyExtractor):
    """Stops in its third batch, with episodes in hand, until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()
        self.may_go_on = threading.Event()

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        """Read the episodes, from the third batch on only when it may."""
        if len(self.seen) >= 2 * self.batch_size:
            self.reached.set()
            assert self.may_go_on.wait(120)
        return super().extract(requests)
