"""What a user is told when something is wrong: the thing, the limit, what to do, and never the password."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
import traceback
from collections.abc import Generator
from pathlib import Path

import pytest
from neo4j.exceptions import Neo4jError

from graphmem import GraphMemory
from graphmem.errors import BackendUnavailable, GraphMemError, InvalidInput, StoreAccessDenied, StoreReadOnly
from graphmem.models import Changes, EdgeQuery
from graphmem.settings import Settings
from graphmem_neo4j import Neo4jBackend, open_backend
from graphmem_neo4j.server import require_new_enough, translate
from tests.integration.neo4j.support import SCOPE, edge, entity, of, without_login
from tests.neo4j_server import run

SECRET = "s3cr3t-w0rd"
OURS = (
    "SHOW TRANSACTIONS YIELD currentQuery AS query "
    "WHERE query CONTAINS 'graphmem_id' AND NOT query CONTAINS 'SHOW TRANSACTIONS'"
)


@pytest.fixture
def store(empty_neo4j_url: str) -> Generator[Neo4jBackend, None, None]:
    store = open_backend(empty_neo4j_url)
    yield store
    store.close()


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        ("Neo.ClientError.Security.Forbidden", StoreReadOnly, "lacks a right"),
        ("Neo.ClientError.Transaction.TransactionTimedOut", BackendUnavailable, "db.transaction.timeout"),
        ("Neo.ClientError.Transaction.TransactionTimedOutClientConfiguration", BackendUnavailable, "limit of 7 s"),
        ("Neo.ClientError.General.WriteOnReadOnlyAccessDatabase", StoreReadOnly, "can be read but not written"),
        ("Neo.TransientError.General.DatabaseUnavailable", BackendUnavailable, "try again later"),
        ("Neo.ClientError.Database.DatabaseNotFound", BackendUnavailable, "no such database"),
        ("Neo.ClientError.Security.Unauthorized", StoreAccessDenied, "user name or password are wrong"),
        ("Neo.ClientError.Security.AuthenticationRateLimit", StoreAccessDenied, "user name or password are wrong"),
    ],
)
def test_errors_of_the_server_say_what_to_do(code: str, kind: type[Exception], words: str) -> None:
    error = Neo4jError._hydrate_neo4j(code=code, message="told by the server")  # pyright: ignore[reportPrivateUsage]
    found = translate(error, "neo4j://host", 7.0)
    assert type(found) is kind
    assert words in str(found)


@pytest.mark.parametrize("agent", ["Neo4j/4.4.41", "Neo4j/5.25.1", "Neo4j/3.5.0"])
def test_a_server_that_is_too_old_is_named_with_what_is_needed(agent: str) -> None:
    with pytest.raises(BackendUnavailable, match=f"the server is {agent}, graphmem needs Neo4j 5.26 or later"):
        require_new_enough(agent, "neo4j://host")


@pytest.mark.parametrize("agent", ["Neo4j/5.26.0", "Neo4j/5.27-aura", "Neo4j/2025.01.0", "Neo4j/2026.08.1", "Other/1"])
def test_servers_from_the_lts_line_on_are_taken(agent: str) -> None:
    require_new_enough(agent, "neo4j://host")


@pytest.mark.full
@pytest.mark.slow
def test_a_slow_query_is_cancelled_at_its_time_limit_and_is_gone_from_the_server(
    empty_neo4j_url: str, store: Neo4jBackend
) -> None:
    # each fact makes the search for a text that nearly fits it everywhere take milliseconds: 10 s for all of them
    names = [entity(f"Name {n}") for n in range(4000)]
    slow = [edge(names[0], name, fact="a" * 2000) for name in names[1:]]
    store.write(SCOPE, of(*names))
    store.write(SCOPE, Changes(edges=tuple(slow)))
    with GraphMemory.open(empty_neo4j_url, scope=SCOPE, extractor="none", store_timeout=2.0) as memory:
        begun = time.monotonic()
        with pytest.raises(BackendUnavailable, match=r"time limit of 2 s.*store_timeout"):
            memory.history("Name 0", text=f"{'a' * 1000}b")
        assert time.monotonic() - begun < 60
    _wait_until_none(empty_neo4j_url)
    assert store.stats(SCOPE).edges == len(slow)


def test_a_transaction_that_takes_too_long_is_cancelled_and_writes_nothing(
    empty_neo4j_url: str, store: Neo4jBackend
) -> None:
    impatient = open_backend(empty_neo4j_url, timeout=1.0)
    try:
        with pytest.raises(BackendUnavailable, match="time limit of 1 s"):
            impatient.atomic(lambda: _write_and_wait(impatient))
    finally:
        impatient.close()
    assert store.stats(SCOPE).entities == 0


def _write_and_wait(store: Neo4jBackend) -> None:
    store.write(SCOPE, of(entity("Anna")))
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        store.find_edges([SCOPE], EdgeQuery())


def _wait_until_none(url: str) -> None:
    deadline = time.monotonic() + 30
    while found := run(url, OURS):
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


# Passwords


def everything_told(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error)


@pytest.mark.parametrize("scheme", ["bolt", "neo4j"])
def test_a_wrong_password_is_in_no_message_log_line_or_traceback(
    empty_neo4j_url: str, scheme: str, caplog: pytest.LogCaptureFixture
) -> None:
    host = without_login(empty_neo4j_url).partition("://")[2]
    with caplog.at_level(logging.DEBUG), pytest.raises(BackendUnavailable) as caught:
        open_backend(f"{scheme}://neo4j:{SECRET}@{host}")
    assert caplog.records
    assert SECRET not in caplog.text + everything_told(caught.value)


def test_the_password_of_an_open_store_is_in_no_log_line_repr_or_report(
    empty_neo4j_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    from tests.neo4j_server import PASSWORD

    with caplog.at_level(logging.DEBUG), GraphMemory.open(empty_neo4j_url, extractor="none") as memory:
        memory.add_facts([("Anna", "knows", "Berta")])
        memory.recall("Anna")
        told = [repr(memory), *map(str, memory.admin.doctor())]
    store = open_backend(empty_neo4j_url)
    told += [repr(store), repr(store.database), repr(store.database.address), str(store.diagnose())]
    store.close()
    assert caplog.records
    assert PASSWORD not in caplog.text + "".join(told)


def test_settings_log_in_and_hide_the_password(empty_neo4j_url: str) -> None:
    from tests.neo4j_server import PASSWORD

    settings = Settings(store=without_login(empty_neo4j_url), store_username="neo4j", store_password=PASSWORD)
    GraphMemory.open(settings=settings, extractor="none").close()
    assert PASSWORD not in f"{settings!r} {settings} {settings.shown()}"
    assert settings.shown()["store_password"] == "***"


@pytest.mark.parametrize(
    "wrong", [{"store_password": [SECRET]}, {"store_pasword": SECRET}, {"store": [f"neo4j://u:{SECRET}@host"]}]
)
def test_a_setting_that_does_not_fit_is_told_without_its_password(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))) as caught:
        Settings(**wrong)
    assert SECRET not in everything_told(caught.value)


@pytest.mark.parametrize(
    "url", [f"neo4j://u:{SECRET}/@host", f"nosuch://u:{SECRET}@host", f"NEO4J://u:a/{SECRET}@host"]
)
def test_a_url_that_does_not_open_is_told_without_its_password(url: str) -> None:
    with pytest.raises(GraphMemError) as caught:
        GraphMemory.open(url)
    assert SECRET not in everything_told(caught.value)


@pytest.mark.parametrize("command", [["doctor", "--debug"], ["recall", "Anna", "--debug"], ["config", "--json"]])
def test_the_command_line_shows_no_password(empty_neo4j_url: str, command: list[str], tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("graphmem")
    host = without_login(empty_neo4j_url).partition("://")[2]
    environment = {"GRAPHMEM_STORE": f"neo4j://neo4j:{SECRET}@{host}", "GRAPHMEM_STORE_PASSWORD": SECRET}
    ran = subprocess.run(
        [program, *command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == (0 if command[0] == "config" else 3)
    assert SECRET not in ran.stdout + ran.stderr
