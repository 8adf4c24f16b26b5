"""Every statement is served by indexes, and the work on a hub doesn't grow with it."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from graphmem.models import (
    AsOf,
    Changes,
    CommunityQuery,
    Corroboration,
    EdgeQuery,
    EdgeType,
    Entity,
    EntityQuery,
    Episode,
    EpisodeFilter,
    EpisodeQuery,
    MembershipQuery,
    RecallQuery,
)
from graphmem_sqlite import (
    SQLiteBackend,
    backend,
    communities,
    edges,
    entities,
    episodes,
    index,
    merges,
    rows,
    traces,
    upkeep,
    writing,
)
from graphmem_sqlite.communities import community_statement, membership_statement
from graphmem_sqlite.edges import edge_statement
from graphmem_sqlite.entities import entity_statement
from graphmem_sqlite.episodes import ID_PAGE, episode_statement, session_statement
from graphmem_sqlite.traces import trace_statement
from tests.integration.sqlite.support import MOMENT, SCOPE, edge, entity, of, store_at

AS_OF = AsOf(MOMENT, MOMENT)
FILTER = EpisodeFilter(
    speakers=("a",), roles=("a",), sources=("message",), since=MOMENT, until=MOMENT, metadata={"a": {"$gt": 1}}
)

EDGE_PARTS = {
    "ids": ("a",),
    "source_ids": ("a",),
    "target_ids": ("a",),
    "touching": ("a",),
    "relations": ("knows",),
    "edge_types": (EdgeType.CAUSAL,),
    "keys": (("a", "b", "knows", EdgeType.CAUSAL),),
    "slots": (("a", "knows"),),
    "ended_by": ("a",),
    "text": "word",
    "window": ("valid_from", MOMENT, MOMENT),
}

# Scans of these read no table: the unprocessed episodes are the queue itself, the scopes are listed as a whole, and
# sqlite_sequence has a row for each table.
ALLOWED = (
    re.compile(r"VIRTUAL TABLE"),
    re.compile(r"SCAN \w+ USING (COVERING )?INDEX episodes_unprocessed"),
    re.compile(r"SCAN (\(subquery-\d+\)|ends|wanted)$"),
    re.compile(r"SCAN CONSTANT ROW"),
    re.compile(r"SCAN sqlite_sequence$"),
    re.compile(r"SCAN episodes USING COVERING INDEX episodes_claimed"),
)


def edge_queries() -> Iterator[EdgeQuery]:
    for count in (0, 1, 2):
        for names in combinations(EDGE_PARTS, count):
            parts = {name: EDGE_PARTS[name] for name in names}
            yield EdgeQuery(**parts)  # pyright: ignore[reportArgumentType]
            yield EdgeQuery(**parts, as_of=AS_OF)  # pyright: ignore[reportArgumentType]
            yield EdgeQuery(**parts, versions="active")  # pyright: ignore[reportArgumentType]
            yield EdgeQuery(**parts, versions="all")  # pyright: ignore[reportArgumentType]
    for axis in ("valid_to", "recorded_at", "expired_at"):
        yield EdgeQuery(window=(axis, MOMENT, MOMENT), versions="all")


def constants() -> Iterator[str]:
    """Yield every whole statement that the modules name."""
    modules = (backend, communities, edges, entities, episodes, index, merges, rows, traces, upkeep, writing)
    for module in modules:
        for name, value in vars(module).items():
            if re.fullmatch(r"[A-Z][A-Z_]+", name) and isinstance(value, str) and not name.endswith("COLUMNS"):
                yield value


SIDES: dict[str, dict[str, Any]] = {
    "ids": {"ids": ("a",)},
    "community_ids": {"community_ids": ("a",)},
    "entity_ids": {"entity_ids": ("a",)},
    "edge_ids": {"edge_ids": ("a",)},
    "episode_ids": {"episode_ids": ("a",)},
    "level": {"level": 0},
}
DATES: tuple[dict[str, Any], ...] = ({}, {"as_of": AS_OF}, {"ended": True}, {"as_of": AS_OF, "ended": True})


def parts(*names: str) -> Iterator[dict[str, Any]]:
    """Yield every choice of these fields of a query."""
    for number in range(len(names) + 1):
        for chosen in combinations(names, number):
            yield {name: value for one in chosen for name, value in SIDES[one].items()}


def community_statements() -> Iterator[str]:
    for dates in DATES:
        for fields in parts("ids", "level", "entity_ids"):
            yield community_statement(CommunityQuery(**fields, **dates))
        for fields in parts("community_ids", "level", "entity_ids"):
            for later_page in (False, True):
                yield membership_statement(MembershipQuery(**fields, **dates), later_page=later_page)
    for fields in parts("ids", "entity_ids", "edge_ids", "episode_ids"):
        for newest_first in (False, True):
            yield trace_statement(RecallQuery(**fields), newest_first=newest_first)


def statements() -> list[str]:
    found = [*constants(), *index.UNINDEXED.values()]
    found.remove(backend.SCOPES)  # lists the scopes, one row each
    for query in edge_queries():
        found += [edge_statement(query), edge_statement(query, newest_first=True)]
    for ids in (None, ("a",)):
        for types in (None, ("person",)):
            found += [entity_statement(EntityQuery(ids=ids, entity_types=types, as_of=a)) for a in (None, AS_OF)]
    for query in (
        EpisodeQuery(),
        EpisodeQuery(ids=("a",)),
        EpisodeQuery(external_ids=("a",)),
        EpisodeQuery(session_id="s"),
        EpisodeQuery(before="a"),
        EpisodeQuery(session_id="s", before="a"),
        EpisodeQuery(state="processed"),
        EpisodeQuery(state="pending"),
        EpisodeQuery(state="failed", as_of=AS_OF),
        EpisodeQuery(filters=FILTER),
        EpisodeQuery(filters=FILTER.changed(session_ids=("s", "t"))),
        EpisodeQuery(filters=FILTER.changed(session_prefix="s")),
        EpisodeQuery(filters=FILTER.changed(session_prefix="s"), live_at=MOMENT, as_of=AS_OF),
        EpisodeQuery(ids=("a",), filters=FILTER),
        EpisodeQuery(session_id="s", filters=FILTER),
        EpisodeQuery(live_at=MOMENT),
        EpisodeQuery(hidden_at=MOMENT),
        EpisodeQuery(hidden_at=MOMENT, as_of=AS_OF),
        EpisodeQuery(expired_by=MOMENT, live_at=MOMENT),
        EpisodeQuery(ids=("a",), hidden_at=MOMENT, expired_by=MOMENT),
    ):
        found += [episode_statement(query), episode_statement(query, newest_first=True)]
        found.append(episode_statement(query, page=ID_PAGE))
        found += [session_statement(query, later_page=later_page) for later_page in (False, True)]
    return list(dict.fromkeys([*found, *community_statements()]))


def plan(connection: sqlite3.Connection, statement: str) -> list[str]:
    named = dict.fromkeys(re.findall(r":(\w+)", statement))
    values: dict[str, None] | list[None] = named
    if not named:
        numbered = {int(n) for n in re.findall(r"\?(\d+)", statement)}
        values = [None] * (max(numbered) if numbered else statement.count("?"))
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]


def scans(lines: list[str]) -> list[str]:
    inner = {f"SCAN {line.split()[1]}" for line in lines if line.startswith(("CO-ROUTINE", "MATERIALIZE"))}
    return [
        line
        for line in lines
        if line.startswith("SCAN") and line not in inner and not any(a.search(line) for a in ALLOWED)
    ]


def test_no_statement_scans_a_table(tmp_path: Path) -> None:
    store = store_at(tmp_path / "memory.db")
    connection = store.database.writer
    scanning = {s: found for s in statements() if (found := scans(plan(connection, s)))}
    store.close()
    assert scanning == {}


@pytest.mark.parametrize("kind", ["episode", "fact", "entity"])
def test_a_check_for_unindexed_rows_reads_no_entry(tmp_path: Path, kind: str) -> None:
    """Entries hold vectors, and what is read behind those takes three times as long."""
    store = store_at(tmp_path / "memory.db")
    lines = plan(store.database.writer, index.UNINDEXED[kind])
    store.close()
    of_entries = [line for line in lines if line.startswith("SEARCH i ")]
    assert len(of_entries) == 2
    assert all("COVERING INDEX" in line or "index_entries_incomplete" in line for line in of_entries)


def test_a_scan_would_be_noticed(tmp_path: Path) -> None:
    store = store_at(tmp_path / "memory.db")
    lines = plan(store.database.writer, "SELECT * FROM edges WHERE fact = ?")
    store.close()
    assert scans(lines) == ["SCAN edges"]


def hub_store(path: Path, size: int) -> tuple[SQLiteBackend, Entity]:
    """Return a store in which one entity has `size` edges, half of them towards it; and as many episodes."""
    store = store_at(path)
    hub = entity("Hub")
    others = [entity(f"Other {n}") for n in range(size)]
    facts = [
        edge(*((hub, o) if n % 2 else (o, hub)), confidence=n % 97 / 97, valid_from=MOMENT + timedelta(hours=n))
        for n, o in enumerate(others)
    ]
    store.write(SCOPE, of(hub, *others))
    store.write(SCOPE, Changes(edges=tuple(facts)))
    store.add_episodes(SCOPE, [Episode(scope=SCOPE, text="hello", session_id=f"b/{n}") for n in range(size)])
    store.add_episodes(SCOPE, [Episode(scope=SCOPE, text="hello", session_id=f"a/{n}") for n in range(3)])
    return store, hub


def steps(store: SQLiteBackend, read: Callable[[], object]) -> int:
    """Count the steps of SQLite's virtual machine, in tens, that a read takes."""
    with store.database.reading() as connection:
        pass  # goes back to the pool, from which the read takes it again
    return steps_on(connection, read)


def steps_on(connection: sqlite3.Connection, call: Callable[[], object]) -> int:
    """Count the steps, in tens, that a call takes on a connection."""
    taken = [0]

    def step() -> int:
        taken[0] += 1
        return 0

    connection.set_progress_handler(step, 10)
    call()
    connection.set_progress_handler(None, 0)
    return taken[0]


READS: dict[str, Callable[[SQLiteBackend, Entity], object]] = {
    "one hop": lambda store, hub: store.expand([SCOPE], [hub.id], hops=1),
    "newest facts": lambda store, hub: store.find_edges(
        [SCOPE], EdgeQuery(source_ids=(hub.id,)), newest_first=True, limit=20
    ),
    "newest facts of either end": lambda store, hub: store.find_edges(
        [SCOPE], EdgeQuery(touching=(hub.id,)), newest_first=True, limit=20
    ),
    "one fact by its key": lambda store, hub: store.find_edges(
        [SCOPE],
        EdgeQuery(keys=((hub.id, entity("Other 1").id, "knows", EdgeType.SEMANTIC),), versions="all"),
    ),
    "an empty slot": lambda store, hub: store.find_edges(
        [SCOPE], EdgeQuery(slots=((hub.id, "lives_in"),), versions="all")
    ),
    "a page of the scope": lambda store, hub: store.find_edges([SCOPE], EdgeQuery(), limit=20),
    "entities by id": lambda store, hub: store.get_entities(
        [SCOPE], [hub.id, *(entity(f"Other {n}").id for n in range(20))]
    ),
    "aliases of entities": lambda store, hub: store.find_aliases(
        [SCOPE], [hub.id, *(entity(f"Other {n}").id for n in range(20))]
    ),
    "facts by id": lambda store, hub: store.get_edges(
        [SCOPE], [e.id for e in store.find_edges([SCOPE], EdgeQuery(), limit=20)]
    ),
    "episodes by id": lambda store, hub: store.get_episodes(
        [SCOPE], [e.id for e in store.find_episodes([SCOPE], EpisodeQuery(), limit=20)]
    ),
    "episodes of two sessions": lambda store, hub: store.find_episodes(
        [SCOPE], EpisodeQuery(filters=EpisodeFilter(session_ids=("a/0", "a/1")))
    ),
    "episodes of the sessions under a prefix": lambda store, hub: store.find_episodes(
        [SCOPE], EpisodeQuery(filters=EpisodeFilter(session_prefix="a/"), live_at=MOMENT, as_of=AS_OF)
    ),
    "ids of the sessions under a prefix": lambda store, hub: store.find_episode_ids(
        [SCOPE], EpisodeQuery(filters=EpisodeFilter(session_prefix="a/"), live_at=MOMENT, as_of=AS_OF)
    ),
    "a page of sessions": lambda store, hub: store.find_sessions([SCOPE], EpisodeQuery(live_at=MOMENT), limit=20),
    "a later page of sessions": lambda store, hub: store.find_sessions(
        [SCOPE], EpisodeQuery(filters=EpisodeFilter(session_prefix="b/")), after="b/1", limit=20
    ),
    "search by a name": lambda store, hub: store.search_entities([SCOPE], words=["hub"], phrases=[], limit=20),
    "search by a common word": lambda store, hub: store.search_entities([SCOPE], words=["other"], phrases=[], limit=20),
}


@pytest.fixture(scope="module")
def hubs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[SQLiteBackend, Entity]]]:
    folder = tmp_path_factory.mktemp("hubs")
    found = [hub_store(folder / f"{size}.db", size) for size in (1000, 4000)]
    yield found
    for store, _ in found:
        store.close()


@pytest.mark.parametrize("name", READS)
def test_the_work_of_a_read_does_not_grow_with_a_hub(hubs: list[tuple[SQLiteBackend, Entity]], name: str) -> None:
    small, large = (steps(store, lambda s=store, h=hub: READS[name](s, h)) for store, hub in hubs)
    assert large <= 1.3 * small + 50


def test_the_work_of_a_corroboration_does_not_grow_with_the_episodes_of_a_fact(tmp_path: Path) -> None:
    taken: list[int] = []
    for size in (100, 3000):
        store = store_at(tmp_path / f"{size}.db")
        ada, ben, latest = entity("Ada"), entity("Ben"), Episode(scope=SCOPE, text="again")
        told = [Episode(scope=SCOPE, text=f"turn {n}") for n in range(size)]
        store.add_episodes(SCOPE, [*told, latest])
        fact = edge(ada, ben, confidence=0.5).changed(episode_ids=tuple(e.id for e in told))
        store.write(SCOPE, Changes(entities=(ada, ben), edges=(fact,)))
        again = Changes(corroborations=(Corroboration(fact.id, 0.9, (latest.id,)),))
        taken.append(steps_on(store.database.writer, lambda s=store, c=again: s.write(SCOPE, c)))
        (stored,) = store.find_edges([SCOPE], EdgeQuery())
        assert stored.episode_ids == (*fact.episode_ids, latest.id)
        store.close()
    assert taken[1] <= 1.3 * taken[0] + 20


def test_the_newest_facts_of_a_hub_are_the_newest(hubs: list[tuple[SQLiteBackend, Entity]]) -> None:
    store, hub = hubs[0]
    everything = store.find_edges([SCOPE], EdgeQuery(source_ids=(hub.id,)), limit=100_000)
    newest = store.find_edges([SCOPE], EdgeQuery(source_ids=(hub.id,)), newest_first=True, limit=20)
    key = [(e.valid_from, e.recorded_at, e.id) for e in newest]
    assert key == sorted(((e.valid_from, e.recorded_at, e.id) for e in everything), reverse=True)[:20]
