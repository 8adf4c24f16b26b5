"""What the store of a memory adds to LangGraph's interface, and what it holds to when things go wrong."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest
from langgraph.store.base import ListNamespacesOp, MatchCondition, PutOp

from graphmem import Fact, GraphMemory, InvalidInput, StoreFull
from graphmem.adapters.langgraph import GraphMemoryStore
from graphmem.memory.item_rows import old_session_of, session_of, session_prefix
from graphmem.models import Episode, EpisodeQuery, Scope
from graphmem.testing.langgraph import Clock, keys
from graphmem.text.redact import PatternRedactor
from graphmem_sqlite import SQLiteBackend
from tests.e2e.toy import ToyExtractor

Open = Callable[..., GraphMemory]
MAYA, NATE = ("users", "maya"), ("users", "nate")


@pytest.fixture
def open_memory(tmp_path: Path) -> Iterator[Open]:
    with ExitStack() as opened:

        def open_one(**options: Any) -> GraphMemory:
            given: dict[str, Any] = {
                "extractor": "none",
                "embeddings": "none",
                "background": False,
                "scope": "app",
                **options,
            }
            return opened.enter_context(GraphMemory.open(f"sqlite:///{tmp_path}/memory.db", **given))

        yield open_one


@pytest.fixture
def store(open_memory: Open) -> GraphMemoryStore:
    return GraphMemoryStore(open_memory())


def episodes(store: GraphMemoryStore) -> list[Episode]:
    memory = store.memory
    return memory._engine.backend.find_episodes([memory.scope], EpisodeQuery(), limit=10_000)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("puts", [2, 40])
def test_a_batch_of_puts_reads_the_present_items_at_once(
    store: GraphMemoryStore, monkeypatch: pytest.MonkeyPatch, puts: int
) -> None:
    backend = store.memory._engine.backend  # pyright: ignore[reportPrivateUsage]
    reads: list[EpisodeQuery] = []
    find = backend.find_episodes

    def counted(scopes: Any, query: EpisodeQuery, **page: Any) -> list[Episode]:
        reads.append(query)
        return find(scopes, query, **page)

    store.put(MAYA, "0", {"n": -1})
    monkeypatch.setattr(backend, "find_episodes", counted)
    store.batch([PutOp(MAYA, str(n), {"n": n}) for n in range(puts)])
    assert len(reads) <= 3
    assert [item.value["n"] for item in store.history(MAYA, "0")] == [-1, 0]


def test_more_items_than_places_are_kept_are_read_once(
    store: GraphMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmem.memory.items._MOST_PLACES", 5)
    store.batch([PutOp(MAYA, str(n), {"n": n}) for n in range(20)])
    store.search(MAYA, limit=1)
    backend = store.memory._engine.backend  # pyright: ignore[reportPrivateUsage]
    read: list[str] = []
    get = backend.get_episodes

    def counted(scopes: Any, ids: Any) -> dict[str, Episode]:
        read.extend(ids)
        return get(scopes, ids)

    monkeypatch.setattr(backend, "get_episodes", counted)
    assert len(store.search(MAYA, limit=1)) == 1
    assert len(read) == 1


# History


def test_a_put_over_a_key_keeps_the_old_value_and_its_times(store: GraphMemoryStore) -> None:
    for color in ("red", "blue", "green"):
        store.put(MAYA, "color", {"is": color})
    red, blue, green = store.history(MAYA, "color")
    assert [item.value["is"] for item in (red, blue, green)] == ["red", "blue", "green"]
    assert (red.ended_at, blue.ended_at, green.ended_at) == (blue.updated_at, green.updated_at, None)
    assert red.created_at == blue.created_at == green.created_at == red.updated_at
    current = store.get(MAYA, "color")
    assert current is not None
    assert (current.created_at, current.updated_at) == (red.created_at, green.updated_at)


def test_the_past_is_read_with_as_of(store: GraphMemoryStore) -> None:
    store.put(MAYA, "tea", {"text": "Maya drinks green tea"})
    store.put(MAYA, "tea", {"text": "Maya drinks oolong"})
    store.put(MAYA, "dog", {"text": "Rex"})
    then = store.history(MAYA, "tea")[0].updated_at
    old = {"text": "Maya drinks green tea"}
    found = store.get(MAYA, "tea", as_of=then)
    assert found is not None
    assert found.value == old
    several: list[dict[str, Any]] = [{}, {"query": "green tea"}, {"filter": old}, {"filter": {"text": {"$ne": "x"}}}]
    for options in several:
        assert [item.value for item in store.search(("users",), as_of=then, **options)] == [old]
        assert [item.value for item in asyncio.run(store.asearch(("users",), as_of=then, **options))] == [old]
    assert store.search(("users",), as_of="2020-01-01") == []
    assert store.get(MAYA, "tea", as_of="2020-01-01") is None
    assert store.search(("users",), filter=old) == []


def test_a_deleted_item_has_a_history_and_begins_again(store: GraphMemoryStore) -> None:
    store.put(MAYA, "k", {"n": 1})
    store.put(MAYA, "other", {"n": 2})
    store.delete(MAYA, "k")
    assert [item.ended_at is None for item in store.history(MAYA, "k")] == [False]
    store.put(MAYA, "k", {"n": 3})
    first, second = asyncio.run(store.ahistory(MAYA, "k"))
    assert first.created_at < second.created_at == second.updated_at
    assert keys(store.search(MAYA)) == ["other", "k"]
    assert store.history(MAYA, "unknown") == []


def test_an_old_version_has_no_part_in_the_ranking_of_a_new_one(store: GraphMemoryStore) -> None:
    store.put(MAYA, "a", {"text": "apples"})
    store.put(MAYA, "a", {"text": "the weather"})
    store.put(MAYA, "b", {"text": "the weather"})
    first, second = store.search(MAYA, query="apples")
    assert first.score == second.score == 0.0


def test_erase_removes_every_version_to_the_bytes_of_the_file(
    store: GraphMemoryStore, open_memory: Open, tmp_path: Path
) -> None:
    store.put(MAYA, "code", {"text": "plumeria"})
    store.put(MAYA, "code", {"text": "jacaranda"})
    store.put(MAYA, "other", {"text": "stays"})
    assert store.search(MAYA, query="jacaranda")
    erased = store.erase(MAYA, "code")
    assert erased is not None
    assert (erased.episodes, erased.left) == (2, ())
    assert store.history(MAYA, "code") == []
    assert keys(store.search(MAYA)) == ["other"]
    assert asyncio.run(store.aerase(MAYA, "code")) is None
    store.memory.close()
    left = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"stays" in left
    assert b"plumeria" not in left
    assert b"jacaranda" not in left


def test_items_of_a_namespace_are_listed_together_after_its_first_one_is_erased(store: GraphMemoryStore) -> None:
    for namespace, key in ((MAYA, "1"), (MAYA, "2"), (NATE, "1")):
        store.put(namespace, key, {"n": 1})
    store.erase(MAYA, "1")
    store.put(MAYA, "3", {"n": 1})
    right = [(MAYA, "2"), (MAYA, "3"), (NATE, "1")]
    assert [(item.namespace, item.key) for item in store.search(("users",))] == right
    assert [(item.namespace, item.key) for n in range(3) for item in store.search((), limit=1, offset=n)] == right


def test_a_person_is_forgotten_with_the_items_that_name_her(store: GraphMemoryStore) -> None:
    store.put(MAYA, "tea", {"text": "Maya drinks green tea"})
    store.put(MAYA, "tea", {"text": "She drinks oolong"})
    store.put(NATE, "tea", {"text": "Nate drinks nothing"})
    assert store.memory.forget("Maya", with_episodes=True).episodes == 2
    assert store.history(MAYA, "tea") == []
    assert store.list_namespaces() == [NATE]


# Sessions


def test_reads_under_a_prefix_ask_the_store_for_its_sessions(
    store: GraphMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for namespace in (MAYA, NATE, ("users", "mayas"), (*MAYA, "notes")):
        store.put(namespace, "tea", {"text": "tea", "n": 1})
    backend, asked = store.memory._engine.backend, list[str | None]()  # pyright: ignore[reportPrivateUsage]
    find_ids = backend.find_episode_ids

    def find_episode_ids(scopes: Sequence[Scope], query: EpisodeQuery) -> list[str]:
        asked.append(query.filters and query.filters.session_prefix)
        return find_ids(scopes, query)

    monkeypatch.setattr(backend, "find_episode_ids", find_episode_ids)
    options: list[dict[str, Any]] = [{}, {"filter": {"n": 1}}, {"query": "tea"}]
    for given in options:
        assert {item.namespace for item in store.search(MAYA, **given)} == {MAYA, (*MAYA, "notes")}
    assert store.list_namespaces(prefix=MAYA) == [MAYA, (*MAYA, "notes")]
    assert store.list_namespaces(prefix=(*MAYA, "*")) == [(*MAYA, "notes")]
    assert asked == [session_prefix(MAYA)] * 5


def test_items_with_sessions_of_earlier_versions_are_read_replaced_and_erased(
    store: GraphMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr("graphmem.memory.items.session_of", old_session_of)
        for key, n in (("tea", 1), ("tea", 2), ("gone", 3)):
            store.put(MAYA, key, {"n": n})
        store.delete(MAYA, "gone")
        store.put(NATE, "tea", {"n": 4})
    for key, n in (("tea", 5), ("gone", 6), ("new", 7)):
        store.put(MAYA, key, {"n": n})
    assert {episode.session_id for episode in episodes(store)} == {
        *(old_session_of(*path) for path in ((MAYA, "tea"), (MAYA, "gone"), (NATE, "tea"))),
        *(session_of(*path) for path in ((MAYA, "gone"), (MAYA, "new"))),
    }
    assert [item.value["n"] for item in store.search(("users",))] == [5, 6, 7, 4]
    assert [item.value["n"] for item in store.search(NATE, query="n")] == [4]
    assert store.list_namespaces(prefix=("users",)) == [MAYA, NATE]
    read = [store.get(MAYA, key) for key in ("tea", "gone", "new")]
    assert [item and item.value["n"] for item in read] == [5, 6, 7]
    assert [item.value["n"] for item in store.history(MAYA, "tea")] == [1, 2, 5]
    assert [item.value["n"] for item in store.history(MAYA, "gone")] == [3, 6]
    with monkeypatch.context() as busy:
        busy.setattr("graphmem.upkeep.forget.scrub_files", Mock(side_effect=[["log"], ["log again"]]))
        erased = store.erase(MAYA, "gone")
    assert erased is not None
    assert (erased.episodes, erased.left) == (2, ("log", "log again"))
    assert store.history(MAYA, "gone") == []


def test_no_session_of_an_item_looks_like_personal_data() -> None:
    redactor = PatternRedactor()
    for n in range(300):
        session = session_of(("users", f"user-{n}", "notes"), str(n))
        assert redactor.redact(session, ()) == session


# Scopes


def test_searches_of_the_memory_find_items_only_where_they_are_to_be_visible(open_memory: Open) -> None:
    memory = open_memory()
    hidden, shown = GraphMemoryStore(memory), GraphMemoryStore(memory, visible=True)
    hidden.put(MAYA, "tea", {"text": "Maya drinks green tea"})
    assert memory.search("green tea").found == ()
    assert "green tea" not in memory.context("green tea")
    assert hidden.memory.search("green tea").found[0].episode.text == "text: Maya drinks green tea"
    shown.put(MAYA, "tea", {"text": "Maya drinks white tea"})
    assert "white tea" in memory.context("Which tea?")
    assert [item.value for item in hidden.search(())] == [{"text": "Maya drinks green tea"}]
    memory.remember("Nate drinks tea.")
    assert [item.value for item in shown.search((), query="tea")] == [{"text": "Maya drinks white tea"}]
    assert [item.value for item in shown.search(())] == [{"text": "Maya drinks white tea"}]


def test_stores_of_other_scopes_share_nothing(open_memory: Open) -> None:
    memory = open_memory()
    stores = {
        text: GraphMemoryStore(memory.in_scope(text)) for text in ("app", "app/items", "users/a", "users/a/items")
    }
    for text, store in stores.items():
        store.put(("ns",), "k", {"of": text})
    for text, store in stores.items():
        assert [item.value for item in store.search(())] == [{"of": text}]
        assert memory.in_scope(text).search("of").found == ()


def test_an_item_is_not_extracted_unless_asked_for(open_memory: Open) -> None:
    memory = open_memory(extractor=ToyExtractor())
    plain = GraphMemoryStore(memory)
    plain.put(MAYA, "home", {"text": "Maya | lives_in | Lisbon"}, index=["text"])
    assert plain.memory.stats().pending_episodes == 0
    store = GraphMemoryStore(memory.in_scope("other"), index={"fields": ["text"]}, extract=True)
    store.put(MAYA, "home", {"text": "Maya | lives_in | Porto", "n": 1})
    store.put(MAYA, "job", {"text": "Maya | works_at | Globex"}, index=False)
    assert store.memory.flush() == 0
    facts: list[Fact] = list(store.memory.recall("Maya").facts)
    assert [fact.fact for fact in facts] == ["Maya lives_in Porto"]
    assert plain.memory.recall("Maya").facts == ()


# Batches


def test_a_batch_with_an_invalid_value_stores_nothing(store: GraphMemoryStore) -> None:
    with pytest.raises(InvalidInput, match="JSON"):
        store.batch([PutOp(MAYA, "good", {"n": 1}), PutOp(MAYA, "bad", {"n": object()})])
    for ops in ([PutOp(("a.b",), "k", {})], [PutOp(MAYA, "k", {}, ttl=-1)], [PutOp(MAYA, "k", {}, ttl=1e300)], [1]):
        with pytest.raises(ValueError, match=r"."):
            store.batch([PutOp(MAYA, "good", {"n": 1}), *ops])  # pyright: ignore[reportArgumentType]
    assert store.search(()) == []


@pytest.mark.parametrize("value", ["a text", 7, [1], [("n", 1)]])
def test_a_value_that_is_no_mapping_is_refused(store: GraphMemoryStore, value: Any) -> None:
    with pytest.raises(InvalidInput, match=r"namespace: expected a tuple of texts"):
        store.put("users", "key", {})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"value: expected a mapping, got "):
        store.put(MAYA, "k", value)
    with pytest.raises(InvalidInput, match=r"value: expected a mapping, got "):
        asyncio.run(store.aput(MAYA, "k", value, index=False))


def test_an_unknown_type_of_a_condition_is_refused(store: GraphMemoryStore) -> None:
    condition: Any = MatchCondition(cast("Any", "infix"), ("users",))
    with pytest.raises(InvalidInput, match="'infix'; known are prefix, suffix"):
        store.batch([ListNamespacesOp((condition,))])


@pytest.mark.parametrize("wanted", [{1: "a"}, {"x": {1: "a"}}, {"x": [{1: "a"}]}])
def test_a_filter_with_a_key_that_is_no_text_is_refused(store: GraphMemoryStore, wanted: Any) -> None:
    store.put(MAYA, "k", {"x": {}})
    with pytest.raises(InvalidInput, match="a key has to be a text, got 1"):
        store.search(MAYA, filter=wanted)


def test_concurrent_async_puts_share_transactions_and_no_errors(
    store: GraphMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, groups = store.memory._engine.backend, list[None]()  # pyright: ignore[reportPrivateUsage]
    atomic = backend.atomic
    monkeypatch.setattr(backend, "atomic", lambda work: groups.append(None) or atomic(work))  # pyright: ignore[reportUnknownLambdaType,reportUnknownArgumentType]

    async def run() -> list[Any]:
        values = [{"n": n if n != 7 else object()} for n in range(100)]
        return await asyncio.gather(*(store.aput(MAYA, str(v["n"]), v) for v in values), return_exceptions=True)

    failed = [error for error in asyncio.run(run()) if error is not None]
    assert [type(error) for error in failed] == [InvalidInput]
    assert len(store.search((), limit=1000)) == 99
    assert len(groups) < 20


def test_an_async_put_for_which_the_disk_has_no_room_fails_alone(store: GraphMemoryStore) -> None:
    backend = cast("SQLiteBackend", store.memory._engine.backend)  # pyright: ignore[reportPrivateUsage]
    writer = backend.database.writer
    writer.execute(f"PRAGMA max_page_count = {writer.execute('PRAGMA page_count').fetchone()[0] + 50}")

    async def run() -> list[Any]:
        texts = ["one", "x y z " * 200_000, "two"]
        return await asyncio.gather(*(store.aput(MAYA, t[:3], {"t": t}) for t in texts), return_exceptions=True)

    assert [type(result) for result in asyncio.run(run())] == [type(None), StoreFull, type(None)]
    assert keys(store.search(())) == ["one", "two"]


def test_an_async_put_that_cannot_be_scheduled_holds_up_no_later_one(
    store: GraphMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(ThreadPoolExecutor, "submit", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            asyncio.run(store.aput(MAYA, "first", {"n": 1}))
    asyncio.run(asyncio.wait_for(store.aput(MAYA, "second", {"n": 2}), 20))
    assert keys(store.search(())) == ["second"]


def refuse(*_: object) -> None:
    """Refuse to run a call."""
    raise RuntimeError("can't start new thread")


def test_threads_that_put_one_key_leave_one_current_version(store: GraphMemoryStore) -> None:
    threads = [threading.Thread(target=store.put, args=(MAYA, "k", {"n": n})) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    versions = store.history(MAYA, "k")
    assert sorted(item.value["n"] for item in versions) == list(range(8))
    assert [item.ended_at is None for item in versions] == [False] * 7 + [True]
    assert [item.ended_at for item in versions[:-1]] == [item.updated_at for item in versions[1:]]
    assert [item.value for item in store.search(())] == [versions[-1].value]


WRITER = """
import sys
from langgraph.store.base import ListNamespacesOp, MatchCondition, PutOp
from graphmem import GraphMemory
from graphmem.adapters.langgraph import GraphMemoryStore

memory = GraphMemory.open(sys.argv[1], scope="app", extractor="none", embeddings="none", background=False)
store = GraphMemoryStore(memory)
for number in range(int(sys.argv[2])):
    puts = [PutOp(("batches", str(number)), str(n), {"n": n}) for n in range(50)]
    store.batch([*puts, PutOp(("k",), "k", {"n": number})])
    print(number, flush=True)
"""


@pytest.mark.slow
def test_a_killed_process_leaves_whole_batches_and_what_it_acknowledged(
    store: GraphMemoryStore, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    with subprocess.Popen([sys.executable, "-c", WRITER, url, "100000"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        acknowledged = [process.stdout.readline() for _ in range(5)]
        process.kill()
        acknowledged += process.stdout.readlines()
    namespaces = store.list_namespaces(prefix=("batches",), limit=100_000)
    assert len(namespaces) >= len(acknowledged)
    assert {len(store.search(namespace, limit=100)) for namespace in namespaces} == {50}
    current = store.get(("k",), "k")
    assert current is not None
    assert current.value["n"] == len(namespaces) - 1


@pytest.mark.slow
def test_two_processes_write_to_one_file_and_see_each_other(store: GraphMemoryStore, tmp_path: Path) -> None:
    store.put(("k",), "k", {"n": -1})
    assert store.list_namespaces() == [("k",)]
    url = f"sqlite:///{tmp_path}/memory.db"
    with subprocess.Popen([sys.executable, "-c", WRITER, url, "10"], stdout=subprocess.PIPE, text=True) as process:
        for n in range(100):
            store.put(("k",), "k", {"n": 1000 + n})
        assert process.stdout is not None
        assert len(process.stdout.readlines()) == 10
    versions = store.history(("k",), "k")
    assert len(versions) == 111
    assert [item.ended_at is None for item in versions].count(True) == 1
    assert len(store.list_namespaces(prefix=("batches",))) == 10
    assert len(store.search(("batches",), limit=1000)) == 500


# Settings of the store


def test_an_embedding_model_of_the_store_is_refused(open_memory: Open) -> None:
    with pytest.raises(InvalidInput, match=r"dims, embed .*GraphMemory\.open\(embeddings=…\)"):
        GraphMemoryStore(open_memory(), index={"dims": 3, "embed": lambda texts: [[1.0] for _ in texts]})


def test_only_the_fields_of_the_store_are_indexed_by_default(open_memory: Open) -> None:
    store = GraphMemoryStore(open_memory(), index={"fields": ["title", "tags[*]"]})
    store.put(MAYA, "a", {"title": "apples", "tags": ["plums"], "body": "corn"})
    store.put(MAYA, "b", {"body": "corn"})
    assert [episode.text for episode in episodes(store)] == ["apples\nplums", ""]
    assert keys(store.search(MAYA, query="plums")) == ["a"]
    assert keys(store.search(MAYA)) == ["a", "b"]


def test_a_default_ttl_and_reads_that_do_not_refresh(open_memory: Open) -> None:
    clock = Clock()
    store = GraphMemoryStore(open_memory(clock=clock), ttl={"default_ttl": 10, "refresh_on_read": False})
    store.put(MAYA, "short", {"n": 1})
    store.put(MAYA, "never", {"n": 1}, ttl=None)
    clock.move(9)
    assert store.get(MAYA, "short") is not None
    clock.move(2)
    assert keys(store.search(MAYA)) == ["never"]
    assert store.history(MAYA, "short") == []
    assert asyncio.run(store.asweep_ttl()) == 1
    assert len(episodes(store)) == 1


def test_a_sweeper_erases_at_intervals(open_memory: Open) -> None:
    clock = Clock()
    store = GraphMemoryStore(open_memory(clock=clock), ttl={"sweep_interval_minutes": 60})
    store.put(MAYA, "short", {"n": 1}, ttl=1)
    clock.move(2)
    swept, sweep = threading.Event(), store.sweep_ttl
    store.sweep_ttl = lambda: (sweep(), swept.set())[0]  # type: ignore[method-assign]
    store.start_ttl_sweeper()
    store.start_ttl_sweeper(0.001)
    assert swept.wait(30)
    assert store.stop_ttl_sweeper(30)
    assert store.stop_ttl_sweeper()
    assert episodes(store) == []


def test_a_sweeper_is_waited_for_and_canceled_by_its_future(store: GraphMemoryStore) -> None:
    running = store.start_ttl_sweeper()
    assert store.start_ttl_sweeper() is running
    assert not running.done()
    assert store.stop_ttl_sweeper(30)
    assert running.result(0) is None
    again = store.start_ttl_sweeper()
    assert again.cancel()
    assert store.start_ttl_sweeper() is not again
    assert store.stop_ttl_sweeper(30)


def test_personal_data_is_redacted_in_values_keys_and_namespaces(open_memory: Open, tmp_path: Path) -> None:
    store = GraphMemoryStore(open_memory(redact="all", redact_key="k" * 32, redactor=PatternRedactor()))
    namespace = ("users", "+49 170 7654321")
    store.put(namespace, "+49 170 1234567", {"mail": "maya@example.com", "card": 4111111111111111, "n": 1})
    item = store.get(namespace, "+49 170 1234567")
    assert item is not None
    assert (item.value["mail"], item.value["n"]) == ("[email]", 1)
    assert item.value["card"] != 4111111111111111
    assert keys(store.search(namespace)) == [item.key]
    phone = namespace[1:]
    assert store.list_namespaces(prefix=namespace) == [item.namespace]
    assert store.list_namespaces(prefix=("*", *phone), suffix=phone) == [item.namespace]
    assert store.list_namespaces(suffix=("+49 170 7654322",)) == []
    assert keys(store.search(("users",), filter={"mail": "maya@example.com"})) == [item.key]
    assert keys(store.search(("users",), query="mail")) == [item.key]
    assert len(store.history(namespace, "+49 170 1234567")) == 1
    store.memory.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"maya@example" not in stored
    assert b"4111111111111111" not in stored


def test_items_survive_a_restart_and_an_export(open_memory: Open, tmp_path: Path) -> None:
    store = GraphMemoryStore(open_memory())
    store.put(MAYA, "k", {"n": 1})
    store.put(MAYA, "k", {"n": 2})
    store.memory.admin.export(tmp_path / "items.jsonl")
    store.memory.close()
    again = GraphMemoryStore(open_memory())
    assert [item.value for item in again.history(MAYA, "k")] == [{"n": 1}, {"n": 2}]
    with GraphMemory.open("memory://", scope="moved", extractor="none", embeddings="none", background=False) as other:
        moved = GraphMemoryStore(other)
        moved.memory.admin.import_(tmp_path / "items.jsonl", rename=True)
        assert [item.value for item in moved.search(())] == [{"n": 2}]
        assert [item.value for item in moved.history(MAYA, "k")] == [{"n": 1}, {"n": 2}]


@pytest.mark.slow
def test_a_query_is_answered_by_meaning_too(open_memory: Open) -> None:
    store = GraphMemoryStore(open_memory(embeddings=None), index={"fields": ["text"]})
    for key, text in {"pet": "Rex is a poodle", "city": "She moved to Lisbon", "work": "Her job is accounting"}.items():
        store.put(MAYA, key, {"text": text})
    store.put(MAYA, "unindexed", {"text": "A dog is there"}, index=False)
    assert keys(store.search(MAYA, query="Which dog is there?"))[0] == "pet"
    assert "unindexed" not in keys(store.search(MAYA, query="dog", limit=10))
    assert keys(store.search(MAYA, query="profession"))[0] == "work"
