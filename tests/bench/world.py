"""A graph of any size with names as varied and edges as unevenly spread as real ones: power law, about 20 an entity."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import raw
from numpy.typing import NDArray

from graphmem.models import Scope, new_id
from graphmem_sqlite.entities import scoped_words

DEGREE = 20
HUB_EDGES = 50_000
RELATIONS = (
    "works with",
    "visited",
    "wrote about",
    "prefers",
    "studied",
    "founded",
    "uses",
    "advised",
    "met",
    "moved to",
)
KINDS = ("person", "organization", "location", "concept", "technology")
TYPES = ("semantic", "semantic", "semantic", "temporal", "causal", "entity", "co_occurrence")
SYLLABLES = "ba ce di fo gu ka le mi no pu ra se ti vo xu za che dri sto pla gre thi mon ver lan tor".split()
BEGUN = datetime(2024, 1, 1, tzinfo=UTC)
START = int(BEGUN.timestamp() * 1e6)
DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class World:
    """A store with a graph: where it is, and the entities to ask for.

    `ordinary` and `hub` are (id, name); the hub is None where the graph is too small for one.
    """

    url: str
    scope: Scope
    edges: int
    ordinary: list[tuple[str, str]]
    hub: tuple[str, str] | None


def names(count: int) -> list[str]:
    """Return different names of two or three words; some words are common, most are rare."""
    chance = np.random.default_rng(1)
    vocabulary: list[str] = ["".join(chance.choice(SYLLABLES, size=n)) for n in chance.integers(2, 5, size=20_000)]
    ranks: list[list[int]] = ((chance.pareto(0.8, size=(count, 3)) * 20).astype(int) % len(vocabulary)).tolist()
    found: dict[str, None] = {}
    for number, (a, b, c) in enumerate(ranks):
        name = f"{vocabulary[a]} {vocabulary[b]}".title()
        if name in found:
            name = f"{name} {vocabulary[c].title()}"
        found[name if name not in found else f"{name} {number}"] = None
    return list(found)


def triples(count: int) -> Iterator[dict[str, str]]:
    """Yield facts of such a graph, ten of a source, without holding them."""
    known = names(max(20, count * 2 // DEGREE))
    chance = np.random.default_rng(2)
    for number in range(count):
        a, b = (int(len(known) * x**2) for x in chance.random(2))
        yield {
            "subject": known[a],
            "relation": RELATIONS[number % len(RELATIONS)],
            "object": known[b if b != a else (b + 1) % len(known)],
            "source": f"passage {number // 10}",
        }


@dataclass(frozen=True, slots=True)
class MadeUp:
    """A fact of a graph; its ends are positions among the names, `begun` is in microseconds since 1970."""

    id: str
    source: int
    target: int
    relation: str
    edge_type: str
    fact: str
    confidence: float
    begun: int


@dataclass(frozen=True, slots=True)
class Graph:
    """Entities and the ends of the edges between them: a power law, and a hub where there is room for one."""

    names: list[str]
    ids: list[str]
    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    confidence: NDArray[np.float64]

    @classmethod
    def of(cls, count: int) -> Graph:
        """Return a graph of `count` edges."""
        chance = np.random.default_rng(3)
        known = names(count * 2 // DEGREE)
        entities = len(known)
        sources = (entities * chance.random(count) ** 2).astype(np.int64)
        targets = chance.permutation(entities)[(entities * chance.random(count) ** 2).astype(np.int64)]
        if count >= 4 * HUB_EDGES:
            sources[:HUB_EDGES] = 0
        same = sources == targets
        targets[same] = (targets[same] + 1) % entities
        confidence = np.round(0.5 + 0.5 * chance.random(count), 2)
        return cls(known, [new_id() for _ in known], sources, targets, confidence)

    def facts(self) -> Iterator[MadeUp]:
        """Yield the edges; the number in the relation keeps active keys different."""
        ends = zip(self.sources.tolist(), self.targets.tolist(), strict=True)
        for i, (a, b) in enumerate(ends):
            relation = RELATIONS[i % len(RELATIONS)]
            yield MadeUp(
                id=new_id(),
                source=a,
                target=b,
                relation=f"{relation.replace(' ', '_')}_{i // len(RELATIONS)}",
                edge_type=TYPES[i % len(TYPES)],
                fact=f"{self.names[a]} {relation} {self.names[b]}",
                confidence=float(self.confidence[i]),
                begun=START + (i % 700) * DAY,
            )

    def world(self, url: str, scope: Scope) -> World:
        """Return what to ask where this graph was written."""
        degrees = np.bincount(np.concatenate([self.sources, self.targets]), minlength=len(self.names))
        middling = np.flatnonzero((degrees >= DEGREE // 2) & (degrees <= 2 * DEGREE))
        asked = np.random.default_rng(4).choice(middling, size=min(300, len(middling)), replace=False).tolist()
        hub = (self.ids[0], self.names[0]) if degrees[0] >= HUB_EDGES else None
        return World(url, scope, len(self.sources), [(self.ids[i], self.names[i]) for i in asked], hub)


def build(path: Path, count: int) -> World:
    """Write a graph of `count` edges with plain SQL: what is measured later is reading it."""
    graph = Graph.of(count)
    with closing(raw.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA foreign_keys = OFF")
        indexes = _drop_indexes(connection)
        connection.execute("BEGIN")
        connection.execute("INSERT INTO scopes VALUES (1, ?)", (Scope().key,))
        connection.execute(
            "INSERT INTO episodes (key, id, scope, source, text, occurred_at, recorded_at, processed_at, attempts) "
            "VALUES (1, ?, 1, 'triple', 'all of it', ?, ?, ?, 1)",
            (new_id(), START, START, START),
        )
        _write_entities(connection, graph.names, graph.ids)
        _write_edges(connection, graph)
        connection.execute("COMMIT")
        for statement in indexes:
            connection.execute(statement)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return graph.world(f"sqlite:///{path}", Scope())


def _drop_indexes(connection: sqlite3.Connection) -> list[str]:
    found = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN ('edges', "
        "'edge_episodes')"
    ).fetchall()
    for name, _ in found:
        connection.execute(f"DROP INDEX {name}")
    return [sql for _, sql in found]


def _write_entities(connection: sqlite3.Connection, known: list[str], ids: list[str]) -> None:
    connection.executemany(
        "INSERT INTO entities (key, id, scope, name, canonical_name, entity_type, summary, confidence, first_seen_at, "
        "last_seen_at, recorded_at, access_count, name_words, summary_words) "
        "VALUES (?, ?, 1, ?, ?, ?, '', 1.0, ?, ?, ?, 0, ?, '')",
        (
            (i + 1, ids[i], name, name.lower(), KINDS[i % len(KINDS)], START, START, START, scoped_words(1, name))
            for i, name in enumerate(known)
        ),
    )
    connection.executemany(
        "INSERT INTO aliases VALUES (1, ?, ?, ?)",
        ((name.lower(), KINDS[i % len(KINDS)], i + 1) for i, name in enumerate(known)),
    )


def _write_edges(connection: sqlite3.Connection, graph: Graph) -> None:
    connection.executemany(
        "INSERT INTO edges (key, id, scope, source, target, relation, edge_type, fact, confidence, valid_from, "
        "recorded_at, retrieval_count) VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
        (
            (i + 1, f.id, f.source + 1, f.target + 1, f.relation, f.edge_type, f.fact, f.confidence, f.begun, f.begun)
            for i, f in enumerate(graph.facts())
        ),
    )
    connection.executemany("INSERT INTO edge_episodes VALUES (?, 0, 1)", ((i + 1,) for i in range(len(graph.sources))))
