"""The client of Graph Data Science, on the connections that the store has. Importing this needs graphdatascience."""

from __future__ import annotations

from typing import Any

from graphdatascience import GraphDataScience
from graphdatascience.query_runner.neo4j_query_runner import Neo4jQueryRunner
from neo4j import Bookmarks

from graphmem_neo4j.connection import Database


class Runner(Neo4jQueryRunner):
    """Sends what the client asks through the driver of a store; it sees what this process wrote before.

    Parameters
    ----------
    database
        The store's database; it stays open when the client goes.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database.driver, "bolt", database=database.place.database, show_progress=False)
        self._store = database

    def bookmarks(self) -> Bookmarks:
        """Return what the next transaction has to see."""
        return self._store.bookmarks()

    def _verify_connectivity(self, *_: Any, **__: Any) -> None:
        """Do nothing: the client would try once a second for ten minutes before it says that the server is gone."""


def client_of(database: Database) -> GraphDataScience:
    """Return a client for a database that has GDS."""
    return GraphDataScience(Runner(database), arrow=False, show_progress=False)
