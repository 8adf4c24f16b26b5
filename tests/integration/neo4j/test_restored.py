"""A process whose database is replaced by an older copy meanwhile: the server lacks the writes that it waits for."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from graphmem.models import EntityQuery
from graphmem_neo4j import Neo4jBackend, open_backend
from tests.integration.neo4j.support import SCOPE, entity, of
from tests.neo4j_server import Neo4jServer

WAITS = {"NEO4J_db_transaction_bookmark__ready__timeout": "1s"}


def lose_writes(store: Neo4jBackend) -> None:
    """Have a store wait for a transaction that its database never had."""
    manager = store.database._bookmarks  # pyright: ignore[reportPrivateUsage]
    known = list(manager.get_bookmarks())
    packed = base64.b64decode(known[0].removeprefix("FB:"))
    later = base64.b64encode(packed[:19] + b"\xca\x7f\xff\xff\xff\x90").decode()  # a list: id, number, none
    manager.update_bookmarks(known, [f"FB:{later}"])


@pytest.mark.slow  # it starts a server of its own
def test_a_process_goes_on_with_a_database_that_was_restored(
    start_neo4j: Callable[..., Neo4jServer], caplog: pytest.LogCaptureFixture
) -> None:
    store = open_backend(start_neo4j(WAITS, gds=False).url)
    store.write(SCOPE, of(entity("Ada")))
    address = store.database.address
    count = 0
    for scheme in ("bolt", "neo4j"):  # with routing, the member that takes writes is asked whether they are lost
        store.database.address = replace(address, uri=address.uri.replace("bolt", scheme))
        for attempt in (
            partial(store.find_entities, [SCOPE], EntityQuery()),
            partial(store.write, SCOPE, of(entity(f"Friend by {scheme}"))),
        ):
            lose_writes(store)
            count += 1
            with caplog.at_level(logging.WARNING, "graphmem_neo4j"):
                attempt()
            told = [record.getMessage() for record in caplog.records if record.name == "graphmem_neo4j.connection"]
            assert ["lacks writes of this process" in message for message in told] == [True] * count
            assert store.find_entities([SCOPE], EntityQuery())
    assert {e.name for e in store.find_entities([SCOPE], EntityQuery())} == {"Ada", "Friend by bolt", "Friend by neo4j"}
    store.close()
