"""The client of Graph Data Science, on the connections of the store. This module needs graphdatascience to import."""

from __future__ import annotations

from typing import Any

from graphdatascience import GraphDataScience
from graphdatascience.query_runner.neo4j_query_runner import Neo4jQueryRunner
from neo4j import Bookmarks

from graphmem_neo4j.connection import Database


class Runner(Neo4jQueryRunner):
    """Runs queries of the client through the driver of a store; they see earlier writes of this process.

    Parameters
    ----------
    database
        The store's database; it stays open when the client is closed.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database.driver, "bolt", database=database.address.database, show_progress=False)
        self._store = database

    def bookmarks(self) -> Bookmarks:
        """Return the bookmarks for the next transaction."""
        return self._store.bookmarks()

    def _verify_connectivity(self, *_: Any, **__: Any) -> None:
        """Do nothing: the client would retry for ten minutes before it reports that the server is gone."""


def client_of(database: Database) -> GraphDataScience:
    """Return a client for a database that has GDS."""
    return GraphDataScience(Runner(database), arrow=False, show_progress=False)
