"""Community detection by Graph Data Science, inside of the server. This module needs graphdatascience to import."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any
from uuid import uuid4

import numpy as np
from graphdatascience import GraphDataScience
from graphdatascience.graph import Graph
from graphdatascience.query_runner.neo4j_query_runner import Neo4jQueryRunner
from neo4j import Bookmarks
from numpy.typing import NDArray

from graphmem.errors import GraphTooLarge, InvalidInput
from graphmem.models import MIN_EDGE_WEIGHT, CommunityAlgorithm, Partition, Scope, propagation_tries
from graphmem.protocols import CommunityDetector
from graphmem_cypher import query
from graphmem_neo4j.connection import Database
from graphmem_neo4j.diagnostics import Neo4jCounts
from graphmem_neo4j.server import translated

_log = logging.getLogger(__name__)

_ROUNDS = 50
_RANDOM_SEED = 1
_HEAP_SHARE = 0.5
_WEIGHTED: dict[str, Any] = {"relationship_weight_property": "weight", "concurrency": 1, "log_progress": False}


class GdsDetector(CommunityDetector):
    """Community detection with Graph Data Science: only ids and labels leave the server.

    GDS works on a copy of the scope's graph in the server's memory, under a unique name; the copy is always dropped.
    With one thread and a fixed random seed, the same graph gives the same communities on the same version of GDS.

    Parameters
    ----------
    database
        The database of the graph.
    client
        A client of the same database.
    heap_share
        Largest share of the server's heap that the copy of a graph may need, by the estimate of GDS.
    """

    def __init__(self, database: Database, client: GraphDataScience, heap_share: float = _HEAP_SHARE) -> None:
        self._database = database
        self._client = client
        self._heap_share = heap_share

    def detect(
        self, scope: Scope, algorithm: CommunityAlgorithm = "label_propagation", seed: Mapping[str, str] | None = None
    ) -> Partition:
        """Return the communities of a scope; see `CommunityDetector`."""
        if algorithm not in ("label_propagation", "leiden"):
            raise InvalidInput(f"algorithm {algorithm!r}: expected label_propagation or leiden")
        with translated(self._database.address.name):
            edges = self._require_memory(scope)
            found = self._found(scope, algorithm, None if seed is None else _numbered(seed))
            if algorithm == "leiden" or seed is not None:
                return found
            tries = (
                self._found(scope, algorithm, *(_shuffled(found.node_ids, 2 * number + half) for half in (0, 1)))
                for number in range(1, propagation_tries(edges))
            )
            return max((found, *tries), key=lambda partition: partition.modularity)

    def _found(
        self,
        scope: Scope,
        algorithm: CommunityAlgorithm,
        start: Mapping[str, int] | None,
        order: Mapping[str, int] | None = None,
    ) -> Partition:
        with self._projected(scope, start or {}, order) as graph:
            if graph is None:
                return Partition.of([], [np.zeros(0, dtype=np.int64)], 0.0)
            if algorithm == "leiden":
                return self._leiden(graph, seeded=start is not None)
            self._client.label_propagation.mutate(
                graph, "community", max_iterations=_ROUNDS, seed_property="seed", **_WEIGHTED
            )
            measured = self._client.modularity.stats(graph, "community", **_WEIGHTED)
            return Partition.of(*self._labels(graph, "community"), measured.modularity)

    def _leiden(self, graph: Graph, *, seeded: bool) -> Partition:
        found = self._client.leiden.mutate(
            graph, "levels", include_intermediate_communities=True, random_seed=_RANDOM_SEED, **_WEIGHTED
        )
        node_ids, levels = self._labels(graph, "levels")
        if not seeded:
            return Partition.of(node_ids, levels, found.modularity)
        # Leiden in GDS 2.13 handles seeds badly: it fails if they can't be improved, merges groups that no edge
        # connects, and allocates 16 n² bytes. Modularity optimization is its first phase.
        kept = self._client.modularity_optimization.mutate(graph, "kept", seed_property="seed", **_WEIGHTED)
        return Partition.of(node_ids, [*self._labels(graph, "kept")[1], *levels[1:]], kept.modularity)

    def _labels(self, graph: Graph, name: str) -> tuple[list[str], list[NDArray[np.int64]]]:
        """Return entity ids and the labels that GDS stored in a property, the coarsest level first."""
        values = {"graph": graph.name(), "property": name}
        found: Any = self._client.run_cypher(query("projected_communities"), {"q": values})
        labels = np.array(found["community"].tolist(), dtype=np.int64)
        columns = labels.reshape(len(labels), -1).T[::-1]
        return found["id"].tolist(), list(columns)

    @contextmanager
    def _projected(
        self, scope: Scope, labels: Mapping[str, int], order: Mapping[str, int] | None
    ) -> Generator[Graph | None, None, None]:
        """Copy the graph of a scope into the catalog of GDS for the duration of the context; yield None for no graph.

        Nodes that aren't in `labels` start with a label of their own.
        """
        statement = query("project_communities" if order is None else "project_communities_in_order")
        name = f"graphmem-{socket.gethostname()}-{os.getpid()}-{uuid4()}"
        values = {
            "graph": name,
            "scope": scope.key,
            "seed": labels,
            "free": max(labels.values(), default=-1) + 1,
            "order": order,
            "min_weight": MIN_EDGE_WEIGHT,
        }
        try:
            projected: Any = self._client.run_cypher(statement, {"q": values})
            yield self._client.graph.get(name) if projected["nodes"].iloc[0] else None
        finally:
            self._drop(name)

    def _drop(self, name: str) -> None:
        try:
            self._client.graph.drop(name, fail_if_missing=False)
        except Exception:  # noqa: BLE001  it would hide the original error; a server that is gone has no graph
            _log.warning("%s: the projection %s could not be dropped", self._database.address.name, name, exc_info=True)

    def _require_memory(self, scope: Scope) -> int:
        """Raise if the server lacks the memory for a graph; return its number of active facts."""
        held = Neo4jCounts(self._database).stats(scope)
        values = {"nodes": held.entities, "relationships": held.active_edges}
        ((share, needed), *_) = self._database.read("projection_memory", **values)
        if share > self._heap_share:
            raise GraphTooLarge(
                f"{self._database.address.name}: GDS needs {needed} for {held.active_edges} active facts, {share:.0%} "
                f"of the server's heap or more; at most {self._heap_share:.0%} may be taken: raise "
                "server.memory.heap.max_size"
            )
        return held.active_edges


def _numbered(seed: Mapping[str, str]) -> dict[str, int]:
    """Return the communities as numbers from 0, in the order of their first entities.

    GDS accepts only numbers as seeds, and of labels with equal weight the smallest wins.
    """
    numbers: dict[str, int] = {}
    return {node: numbers.setdefault(seed[node], len(numbers)) for node in sorted(seed)}


def _shuffled(node_ids: Sequence[str], number: int) -> dict[str, int]:
    """Return a unique number for each node, in a pseudo-random order."""
    places = list(range(len(node_ids)))
    Random(number).shuffle(places)
    return dict(zip(node_ids, places, strict=True))


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
