"""`Neo4jBackend`: the union of the role classes, with transactions and the server's own engines."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import asdict
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar

from graphmem.models import Move, mark_of
from graphmem.protocols import GraphBackend
from graphmem_neo4j.browser import Neo4jBrowser
from graphmem_neo4j.communities import Neo4jCommunities
from graphmem_neo4j.connection import Database, Transaction
from graphmem_neo4j.diagnostics import Neo4jCounts, Neo4jDiagnostics
from graphmem_neo4j.episodes import Neo4jEpisodes
from graphmem_neo4j.graph import Neo4jEdges, Neo4jEntities, Neo4jTraversal
from graphmem_neo4j.server import translated
from graphmem_neo4j.traces import Neo4jTraces
from graphmem_neo4j.upkeep import Neo4jIndex, Neo4jMerges, Neo4jUpkeep
from graphmem_neo4j.vectors import Neo4jVectorIndex
from graphmem_neo4j.writing import Neo4jWrites

if TYPE_CHECKING:
    from graphmem_neo4j.detector import GdsDetector

T = TypeVar("T")

_UNLIMITED = 0.0  # seconds, for the server


class Neo4jBackend(
    Neo4jEntities,
    Neo4jEdges,
    Neo4jEpisodes,
    Neo4jCommunities,
    Neo4jTraces,
    Neo4jIndex,
    Neo4jMerges,
    Neo4jUpkeep,
    Neo4jTraversal,
    Neo4jWrites,
    Neo4jCounts,
    Neo4jDiagnostics,
    GraphBackend,
):
    """A store in a Neo4j database, for concurrent threads and processes.

    Parameters
    ----------
    database
        The open database.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._detector: GdsDetector | None = None

    @property
    def community_detector(self) -> GdsDetector | None:
        """The detector that uses Graph Data Science; None if the server lacks it or this process has no client."""
        database = self._database
        if self._detector is None and find_spec("graphdatascience") is not None and database.read("has_gds"):
            from graphmem_neo4j.detector import GdsDetector, client_of

            with translated(database.address.name):
                self._detector = GdsDetector(database, client_of(database))
        return self._detector

    @property
    def identity(self) -> Hashable:
        """The URI of the server with the name of the database."""
        return self._database.address.name

    @property
    def needs_upgrade(self) -> bool:
        """Whether the database was opened without an upgrade that its schema needs."""
        return self._database.needs_upgrade

    @property
    def explorer(self) -> Neo4jBrowser:
        """Neo4j Browser on this database."""
        return Neo4jBrowser(self._database)

    @property
    def vector_index(self) -> Neo4jVectorIndex:
        """The vector index of the server."""
        return Neo4jVectorIndex(self._database)

    def atomic(self, work: Callable[[], T]) -> T:
        """Run `work` in one write transaction that locks each scope from its first use to the end.

        Writers of one scope are serialized. `work` is retried after a deadlock, a change of leader, or if a program
        other than graphmem took a unique key.
        """
        return self._database.write(lambda _: work())

    def snapshot(self, work: Callable[[GraphBackend], T]) -> T:
        """Run `work` with each scope locked from its first read: the server has no snapshot isolation.

        It has no time limit; writers of these scopes wait.
        """
        return self._database.write(lambda _: work(self), timeout=_UNLIMITED)

    def read_move(self) -> Move | None:
        """Return the mark of a migration."""
        return self._database.read_move()

    def set_move(self, move: Move | None, *, replacing: Move | None) -> bool:
        """Set the mark if it is `replacing`; locks all scopes first, which waits for their writers."""

        def work(transaction: Transaction) -> bool:
            transaction.run("lock_move")
            transaction.run("lock_all_scopes")
            if mark_of(self._database.read_move()) != mark_of(replacing):
                return False
            values = dict.fromkeys(("mark", "id", "state", "source", "target", "started_at"))
            if move is not None:
                values = {**asdict(move), "mark": move.mark, "started_at": move.started_at.isoformat()}
            transaction.run("set_move", **values)
            return True

        return self._database.write(work)

    def adopt(self, move: Move | None) -> None:
        """Set the mark under which this object writes."""
        self._database.adopted = mark_of(move)

    def close(self) -> None:
        """Close all connections; a second call does nothing."""
        self._database.close()
