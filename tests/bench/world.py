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

from graphmem.models import Scope, new_id
from graphmem_sqlite.words import scoped_words

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
START = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1e6)
DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class World:
    """A store with a graph: its file, and the entities to ask for.

    `ordinary` and `hub` are (id, name); the hub is None where the graph is too small for one.
    """

    path: Path
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


def build(path: Path, count: int) -> World:
    """Write a graph of `count` edges with plain SQL: what is measured later is reading it."""
    chance = np.random.default_rng(3)
    known = names(count * 2 // DEGREE)
    ids = [new_id() for _ in known]
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
        _write_entities(connection, known, ids)
        sources, targets = _ends(chance, len(known), count)
        _write_edges(connection, chance, known, sources, targets)
        connection.execute("COMMIT")
        for statement in indexes:
            connection.execute(statement)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    degrees = np.bincount(np.concatenate([sources, targets]), minlength=len(known))
    middling = np.flatnonzero((degrees >= DEGREE // 2) & (degrees <= 2 * DEGREE))
    asked = chance.choice(middling, size=min(300, len(middling)), replace=False)
    hub = (ids[0], known[0]) if degrees[0] >= HUB_EDGES else None
    return World(path, count, [(ids[i], known[i]) for i in asked], hub)


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


def _ends(chance: np.random.Generator, entities: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return source and target of each edge: a power law, and a hub where there is room for one."""
    sources = (entities * chance.random(count) ** 2).astype(np.int64)
    targets = chance.permutation(entities)[(entities * chance.random(count) ** 2).astype(np.int64)]
    if count >= 4 * HUB_EDGES:
        sources[:HUB_EDGES] = 0
    same = sources == targets
    targets[same] = (targets[same] + 1) % entities
    return sources, targets


def _write_edges(
    connection: sqlite3.Connection,
    chance: np.random.Generator,
    known: list[str],
    sources: np.ndarray,
    targets: np.ndarray,
) -> None:
    confidence = np.round(0.5 + 0.5 * chance.random(len(sources)), 2)
    # the number in the relation keeps active keys different
    connection.executemany(
        "INSERT INTO edges (key, id, scope, source, target, relation, edge_type, fact, confidence, valid_from, "
        "recorded_at, retrieval_count) VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
        (
            (
                i + 1,
                new_id(),
                a + 1,
                b + 1,
                f"{RELATIONS[i % len(RELATIONS)].replace(' ', '_')}_{i // len(RELATIONS)}",
                TYPES[i % len(TYPES)],
                f"{known[a]} {RELATIONS[i % len(RELATIONS)]} {known[b]}",
                float(confidence[i]),
                START + (i % 700) * DAY,
                START + (i % 700) * DAY,
            )
            for i, (a, b) in enumerate(zip(sources.tolist(), targets.tolist(), strict=True))
        ),
    )
    connection.executemany("INSERT INTO edge_episodes VALUES (?, 0, 1)", ((i + 1,) for i in range(len(sources))))
