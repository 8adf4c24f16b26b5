"""How often a call is repeated: while the server asks for it, and a short time while it doesn't answer."""

from __future__ import annotations

import pytest
from neo4j.exceptions import ClientError, DriverError, Neo4jError, ServiceUnavailable, TransientError

from graphmem_neo4j import retries
from graphmem_neo4j.retries import ANSWERED_WITHIN, Retries
from graphmem_neo4j.server import RETRIED_FOR

AWAY = ServiceUnavailable("Connection refused")
DEADLOCK = TransientError("deadlock")


class Server:
    """A server that raises errors, on a clock of the test's own, which the first call takes some seconds of."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.seconds = 0.0
        self.calls = 0
        self.errors: list[Neo4jError | DriverError] = []
        self.always: Neo4jError | DriverError | None = None

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def call(self) -> str:
        self.calls += 1
        self.now += self.seconds if self.calls == 1 else 0.0
        if error := self.errors.pop(0) if self.errors else self.always:
            raise error
        return "answer"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    server = Server()
    monkeypatch.setattr(retries, "time", server)
    return server


def never(_: Neo4jError | DriverError) -> bool:
    return False


def took(server: Server, kept: Retries) -> tuple[float, int]:
    """Return for how long a call was tried that fails in the end, and how often."""
    begun, calls = server.now, server.calls
    with pytest.raises((Neo4jError, DriverError)):
        kept.run(server.call, mend=never)
    return server.now - begun, server.calls - calls


def test_a_server_that_does_not_answer_is_waited_for_once(server: Server) -> None:
    server.always, kept = AWAY, Retries("bolt://host")
    seconds, _ = took(server, kept)
    assert ANSWERED_WITHIN <= seconds < ANSWERED_WITHIN + 5
    for _ in range(3):
        seconds, calls = took(server, kept)
        assert (seconds < 1, calls) == (True, 2)
    server.always = None
    assert kept.run(server.call, mend=never) == "answer"
    server.always = AWAY
    assert took(server, kept)[0] >= ANSWERED_WITHIN


def test_a_second_outage_is_waited_for_again(server: Server) -> None:
    server.always, kept = AWAY, Retries("bolt://host")
    took(server, kept)
    server.now += 3600
    assert took(server, kept)[0] >= ANSWERED_WITHIN


def test_a_connection_that_was_lost_during_an_outage_is_made_again(server: Server) -> None:
    server.always, kept = AWAY, Retries("bolt://host")
    took(server, kept)
    server.always = None
    server.errors.append(AWAY)
    assert kept.run(server.call, mend=never) == "answer"


@pytest.mark.parametrize("errors", [[AWAY] * 4, [DEADLOCK] * 4], ids=["no answer", "deadlock"])
def test_a_long_call_is_repeated_as_well(server: Server, errors: list[Neo4jError | DriverError]) -> None:
    server.errors += errors
    server.seconds = 2 * RETRIED_FOR
    assert Retries("bolt://host").run(server.call, mend=never) == "answer"


def test_a_call_is_repeated_while_the_server_asks_for_it(server: Server) -> None:
    server.errors += [DEADLOCK] * 5
    kept = Retries("bolt://host")
    assert kept.run(server.call, mend=never) == "answer"
    assert server.calls == 6
    server.always = DEADLOCK
    seconds, _ = took(server, kept)
    assert RETRIED_FOR <= seconds < RETRIED_FOR + 10


def test_other_errors_are_raised_at_once(server: Server) -> None:
    server.always = ClientError("no such thing")
    assert took(server, Retries("bolt://host")) == (0, 1)


def test_a_cause_that_was_removed_is_not_waited_for(server: Server) -> None:
    server.errors.append(DEADLOCK)
    told = list[object]()
    kept = Retries("bolt://host")
    assert kept.run(server.call, mend=lambda error: not told.append(error)) == "answer"
    assert (told, server.now) == ([DEADLOCK], 1000.0)
