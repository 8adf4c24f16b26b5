"""The MCP server over streamable HTTP: keys, replicas, limits, and what happens when something goes wrong."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError

from graphmem import GraphMemory, InvalidInput
from graphmem.adapters.mcp import Access, KeyFile, MemoryServer
from graphmem.models import Scope
from tests.integration.mcp.clients import SUITE_SERVER, Served, data_of, served, text_of

pytestmark = pytest.mark.slow

MAYA, RAVI = Scope("users", "maya"), Scope("users", "ravi")


def list_tools(**params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def stats(folder: Path) -> Any:
    with GraphMemory.open(f"sqlite:///{folder}/memory.db", extractor="none", background=False) as memory:
        return memory.stats()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def tokens(folder: Path) -> dict[str, str]:
    """Tokens of four keys: two users, a reader and one that was revoked."""
    keys = KeyFile(folder / "keys.json")
    accesses = {
        "maya": Access(scopes=(MAYA,), rights="write", user="Maya Chen", agent="helper"),
        "ravi": Access(scopes=(RAVI,), rights="write", user="Ravi Menon"),
        "reader": Access(scopes=(MAYA, RAVI), rights="read"),
        "revoked": Access(scopes=(MAYA,), rights="admin"),
    }
    made = {name: keys.add(name, access)[1] for name, access in accesses.items()}
    keys.revoke("revoked")
    return made


@pytest.fixture(scope="module")
def replicas(folder: Path, tokens: dict[str, str]) -> Iterator[list[Served]]:
    """Two processes with one store and one file of keys."""
    with served(folder, "--keys", "keys.json") as one, served(folder, "--keys", "keys.json") as other:
        yield [one, other]


@pytest.fixture(params=[pytest.param("legacy", marks=pytest.mark.full), "auto"])
def era(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize(
    "token",
    [None, "wrong", "revoked", "gm_000000000000_AAAA"],
    ids=["no key", "a wrong one", "a revoked one", "an unknown one"],
)
def test_a_call_without_a_valid_key_is_refused(
    replicas: list[Served], tokens: dict[str, str], token: str | None
) -> None:
    sent = tokens["maya"][:-1] if token == "wrong" else tokens.get(token or "", token)
    for replica in replicas:
        for body in (list_tools(), call("memory_recall", {"query": "Maya"}), b"{", b""):
            answer = replica.post(body, sent)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert "memory_" not in answer.text


def test_a_client_without_a_key_can_not_connect(replicas: list[Served], era: str) -> None:
    async def work() -> None:
        async with replicas[0].client(era) as client:
            await client.list_tools()

    with pytest.raises(BaseExceptionGroup):
        asyncio.run(work())


def test_each_key_reads_and_writes_its_own_scopes(replicas: list[Served], tokens: dict[str, str], era: str) -> None:
    async def work() -> None:
        one, other = replicas
        for name in ("maya", "ravi"):
            async with one.client(era, tokens[name]) as client:
                fact = {"subject": f"{name.title()} Person", "relation": "likes", "object": f"the color of {name}"}
                data_of(await client.call_tool("memory_add_facts", {"facts": [fact]}))
                stored = data_of(await client.call_tool("memory_remember", {"text": f"{name} says {era}."}))
            async with other.client(era, tokens[name]) as client:
                found = await client.call_tool("memory_recall", {"query": "Who likes the color of maya or of ravi?"})
                assert {each["fact"] for each in data_of(found)["facts"]} == {
                    f"{name.title()} Person likes the color of {name}"
                }
                said = data_of(await client.call_tool("memory_search", {"query": f"{name} says {era}."}))["episodes"]
                assert stored["episode_id"] in {each["id"] for each in said}
                assert {each.get("speaker") for each in said} <= {"Maya Chen" if name == "maya" else "Ravi Menon", None}
        async with one.client(era, tokens["reader"]) as client:
            found = await client.call_tool("memory_recall", {"query": "Who likes the color of maya or of ravi?"})
            assert len(data_of(found)["facts"]) == 2
            assert "needs the right 'write'" in text_of(await client.call_tool("memory_remember", {"text": "No."}))

    asyncio.run(work())


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Graphmem-Scope": "users/ravi"},
        {"X-Scope": "users/ravi", "Mcp-Session-Id": "users/ravi"},
        {"Cookie": "scope=users/ravi", "X-Forwarded-User": "Ravi Menon"},
    ],
)
def test_no_header_widens_the_scope(replicas: list[Served], tokens: dict[str, str], headers: dict[str, str]) -> None:
    asked = call("memory_recall", {"query": "Who likes the color of ravi?"})
    answer = replicas[0].post(asked, tokens["maya"], **headers)
    assert "Ravi Person" not in answer.text


def test_no_path_or_parameter_widens_the_scope(replicas: list[Served], tokens: dict[str, str]) -> None:
    base = replicas[0].url
    asked = call("memory_recall", {"query": "Who likes the color of ravi?"})
    for url in (f"{base}/users/ravi", f"{base}?scope=users/ravi", f"{base.removesuffix('/mcp')}/users/ravi/mcp"):
        answer = Served(replicas[0].process, url).post(asked, tokens["maya"])
        assert "Ravi Person" not in answer.text


def test_no_argument_widens_the_scope(replicas: list[Served], tokens: dict[str, str], era: str) -> None:
    async def work() -> None:
        async with replicas[0].client(era, tokens["maya"]) as client:
            for argument in ("scope", "scopes", "user", "asked_by", "token"):
                given = {"query": "Who likes the color of ravi?", argument: "users/ravi"}
                refused = await client.call_tool("memory_recall", given)
                assert refused.is_error
                assert "Ravi Person" not in text_of(refused)
            forged = await client.call_tool("memory_remember", {"text": "I am Ravi.", "speaker": "Ravi Menon"})
            assert forged.is_error

    asyncio.run(work())


def test_a_key_that_is_revoked_while_servers_run_is_refused_by_all(
    replicas: list[Served], folder: Path, era: str
) -> None:
    keys = KeyFile(folder / "keys.json")
    _, token = keys.add(f"short {era}", Access(scopes=(MAYA,), rights="read"))

    async def work() -> None:
        async with replicas[0].client(era, token) as one, replicas[1].client(era, token) as other:
            assert (await one.list_tools()).tools
            assert (await other.list_tools()).tools
            keys.revoke(f"short {era}")
            for client in (one, other):
                with pytest.raises(MCPError):
                    await client.call_tool("memory_recall", {"query": "Maya"})

    asyncio.run(work())


def test_two_replicas_give_one_answer(replicas: list[Served], tokens: dict[str, str], era: str) -> None:
    async def work() -> None:
        async with replicas[0].client(era, tokens["maya"]) as one, replicas[1].client(era, tokens["maya"]) as other:
            for n in range(5):
                writer = (one, other)[n % 2]
                await writer.call_tool("memory_remember", {"text": f"The {era} code number {n} is {n * 111}."})
            asked = {"query": f"What is the {era} code number 3?", "limit": 3}
            answers = [data_of(await client.call_tool("memory_search", asked)) for client in (one, other)]
            assert "333" in answers[0]["episodes"][0]["text"]
            assert answers[0] == answers[1]

    asyncio.run(work())


def test_a_body_of_100_mb_is_refused_and_the_server_goes_on(replicas: list[Served], tokens: dict[str, str]) -> None:
    answer = replicas[0].post(b"x" * (100 * 1024 * 1024), tokens["maya"])
    assert answer.status_code == 413
    assert replicas[0].post(b"x" * (100 * 1024 * 1024)).status_code == 401
    assert replicas[0].post(list_tools(), tokens["maya"]).status_code == 200


@pytest.mark.full
def test_10000_facts_are_stored_by_one_call(tmp_path: Path) -> None:
    facts = [
        {"subject": f"Person Number{n}", "relation": "works at", "object": f"Company {n % 100}"} for n in range(10_000)
    ]

    async def work(replica: Served) -> None:
        async with replica.client("auto") as client:
            added = data_of(await client.call_tool("memory_add_facts", {"facts": facts}))
            assert (added["received"], added["new"], added["refused"]) == (10_000, 10_000, [])
            refused = await client.call_tool("memory_add_facts", {"facts": [*facts, facts[0]]})
            assert "at most 10000" in text_of(refused)

    with served(tmp_path) as replica:
        asyncio.run(work(replica))
    assert stats(tmp_path).edges == 10_000


def test_a_client_that_goes_away_in_the_middle_leaves_a_server_that_works(tmp_path: Path, era: str) -> None:
    facts = [{"subject": f"Person Number{n}", "relation": "knows", "object": f"Friend {n}"} for n in range(2000)]

    async def leave(replica: Served) -> None:
        async with replica.client(era) as client:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.call_tool("memory_add_facts", {"facts": facts}), 0.05)

    async def stay(replica: Served) -> None:
        async with replica.client(era) as client:
            data_of(await client.call_tool("memory_remember", {"text": "I am still here."}))

    with served(tmp_path) as replica:
        asyncio.run(leave(replica))
        asyncio.run(stay(replica))
        assert replica.process.poll() is None
    assert stats(tmp_path).episodes >= 1


def test_the_progress_of_a_call_reaches_the_client_before_its_result(tmp_path: Path, era: str) -> None:
    steps: list[float] = []

    async def step(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async def work(replica: Served) -> None:
        async with replica.client(era) as client:
            await client.call_tool("test_tool_with_progress", progress_callback=step)

    with served(tmp_path, "--profile", "full", program=SUITE_SERVER) as replica:
        asyncio.run(work(replica))
    assert steps == [0, 50, 100]


def test_what_a_killed_replica_acknowledged_is_stored(tmp_path: Path) -> None:
    acknowledged: list[str] = []

    async def work(replica: Served) -> None:
        async def remember(worker: int) -> None:
            async with replica.client("auto") as client:
                for n in range(10_000):
                    given = {"text": f"Message {n} of {worker}.", "external_id": f"{worker}-{n}"}
                    acknowledged.append(data_of(await client.call_tool("memory_remember", given))["episode_id"])

        def kill() -> None:
            while len(acknowledged) < 40:
                time.sleep(0.01)
            replica.process.send_signal(signal.SIGKILL)

        threading.Thread(target=kill, daemon=True).start()
        await asyncio.gather(*(remember(worker) for worker in range(4)), return_exceptions=True)

    with served(tmp_path) as replica:
        asyncio.run(work(replica))
        assert replica.process.wait(10) == -signal.SIGKILL
    with GraphMemory.open(f"sqlite:///{tmp_path}/memory.db", extractor="none", background=False) as memory:
        assert len(acknowledged) >= 40
        assert len(memory.episodes(acknowledged)) == len(acknowledged)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", ""])
def test_other_machines_need_a_key(host: str, tmp_path: Path) -> None:
    with GraphMemory.open("memory://", extractor="none", background=False) as memory:
        with pytest.raises(InvalidInput, match="graphmem keys add"):
            MemoryServer(memory).http_app(host)
        keys = KeyFile(tmp_path / "keys.json")
        keys.add("any", Access(scopes=(memory.scope,)))
        assert MemoryServer(memory, keys=keys).http_app(host)


def test_on_the_loopback_address_a_web_page_of_another_host_is_refused(tmp_path: Path) -> None:
    with served(tmp_path) as replica:
        assert replica.post(list_tools()).status_code == 200
        assert replica.post(list_tools(), Host="evil.example").status_code == 421
        assert replica.post(list_tools(), Origin="http://evil.example").status_code == 403


def test_all_addresses_can_be_served_with_keys(tmp_path: Path) -> None:
    _, token = KeyFile(tmp_path / "keys.json").add("any", Access(scopes=(Scope("default"),)))
    with served(tmp_path, "--keys", "keys.json", host="0.0.0.0") as replica:
        assert replica.post(list_tools()).status_code == 401
        streamed = replica.post(list_tools(), token).text.partition("data: ")[2]
        assert len(json.loads(streamed)["result"]["tools"]) == 4
