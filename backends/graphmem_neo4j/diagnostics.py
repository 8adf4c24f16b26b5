"""Counts of scopes, and the checks of `graphmem doctor`: the server, the schema, and the rights of the user."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import timedelta
from importlib.util import find_spec
from statistics import median
from typing import NamedTuple

from neo4j import Transaction

from graphmem.errors import GraphMemError
from graphmem.models import Scope, StoreStats, utc_now
from graphmem_cypher import migrations, query
from graphmem_neo4j.connection import Database, Neo4jRole
from graphmem_neo4j.rows import OUR_LABELS, TYPES, moment
from graphmem_neo4j.server import OUR_NAMES

Finding = tuple[bool, str]

_CLOCKS_APART = timedelta(seconds=5)
_ROUND_TRIPS = 5
_FAR = 0.05
"""Seconds of a round trip from which recalls, which take up to six, become noticeably slow."""
TYPE_LABELS = frozenset(
    "Person Organization Location Event Project Decision Tool Technology Language Concept File Config".split()
)
"""Labels of the entity types of the default ontology."""
_WRITTEN = frozenset(
    "name canonical_name entity_type summary scope text title speaker role source session_id occurred_at external_id "
    "level query relation fact confidence valid_from".split()
)
"""Properties that graphmem writes, and that values of others may equal; a constraint needs all of its properties."""
_NAMED = re.compile(r"(CREATE|DROP) (?:FULLTEXT |VECTOR )?(?:CONSTRAINT|INDEX) (\w+)")


class Neo4jCounts(Neo4jRole):
    """Counts of what the store holds."""

    def scopes(self) -> list[Scope]:
        """Return the scopes that hold anything, ordered by key."""
        return [Scope.from_key(key) for key in sorted(self._database.read("scopes"))]

    def stats(self, scope: Scope) -> StoreStats:
        """Count the rows of a scope; a node without a type, which others wrote, is no entity."""
        rows = self._database.read("stats", [scope], scope=scope.key)
        counted: dict[str, tuple[int, int]] = {kind: (many, of_those) for kind, _, many, of_those in rows}
        entities = [row[1:] for row in rows if row[0] == "entities" and row[1] is not None]
        edges = [row[1:] for row in rows if row[0] == "edges" and row[2]]
        unprocessed, failed = counted["unprocessed"]
        return StoreStats(
            entities=sum(row[1] for row in entities),
            archived_entities=sum(row[2] for row in entities),
            aliases=counted["aliases"][0],
            edges=sum(row[1] for row in edges),
            active_edges=sum(row[2] for row in edges),
            episodes=counted["episodes"][0],
            pending_episodes=unprocessed - failed,
            failed_episodes=failed,
            mentions=counted["episodes"][1],
            communities=counted["communities"][0],
            ended_communities=counted["communities"][1],
            community_members=counted["members"][0],
            recalls=counted["recalls"][0],
            edges_by_type={TYPES[row[0]].value: row[1] for row in edges},
            entities_by_type={row[0]: row[1] for row in entities},
        )


class Neo4jDiagnostics(Neo4jRole):
    """The checks of a store."""

    def diagnose(self) -> list[tuple[str, bool, str]]:
        """Return (check, whether it passed, detail with a remedy); a failed check hides no other."""
        return [(name, *_result(check, self._database)) for name, check in _checks()]


def _checks() -> list[tuple[str, Callable[[Database], Finding]]]:
    return [
        ("place", _place),
        ("Neo4j", _server),
        ("schema", _schema),
        ("indexes", _indexes),
        ("constraints", _constraints),
        ("reading", _reading),
        ("writing", _writing),
        ("making indexes", _making_indexes),
        ("clock", _clock),
        ("round trip", _round_trip),
        ("time limit", _time_limit),
        ("Graph Data Science", _data_science),
    ]


def _result(check: Callable[[Database], Finding], database: Database) -> Finding:
    try:
        return check(database)
    except GraphMemError as error:
        return False, str(error)


def _place(database: Database) -> Finding:
    (name,) = database.read("database_name")
    login = database.address.login
    return True, f"{database.address.uri}, database {name}, {f'user {login[0]}' if login else 'no authentication'}"


def _server(database: Database) -> Finding:
    version, edition = database.server()
    return True, f"{version} {edition}"


def _schema(database: Database) -> Finding:
    (number,) = database.read("schema_number")
    newest = max(migrations())
    if number == newest:
        return True, f"number {number}, the newest"
    if database.needs_upgrade and number is None:
        return True, "none yet: the first command that opens the store creates it, such as graphmem ingest"
    if database.needs_upgrade:
        return True, f"number {number}: the next command that opens the store brings it to {newest}, the newest"
    return False, f"number {number}, this graphmem knows {newest}: another process changed it; open it again"


def _indexes(database: Database) -> Finding:
    """Compare the indexes with those of the migrations; the detail has the statements that recreate missing ones."""
    expected = _expected()
    if database.needs_upgrade:
        return True, "those of the newest schema are made with it"
    rows: list[tuple[str, str, list[str], list[str], str]] = database.read("indexes")
    ours = {name: state for name, state, *_ in rows if name.startswith(OUR_NAMES)}
    found = {
        name: _Definition(tuple(sorted(labels or ())), tuple(keys or ()), kind) for name, _, labels, keys, kind in rows
    }
    usable = set(found.values())
    missing: list[str] = []
    others: list[str] = []
    for name, statement in sorted(expected.items()):
        wanted = _definition(statement)
        if name not in found:
            missing += [] if wanted in usable and not statement.startswith("CREATE CONSTRAINT") else [statement]
        elif found[name] != wanted:
            others.append(f"{name} is one of {':'.join(found[name].labels)} ({', '.join(found[name].properties)})")
    failed = sorted(name for name, state in ours.items() if state == "FAILED")
    building = sorted(name for name, state in ours.items() if state not in ("ONLINE", "FAILED"))
    problems: list[str] = []
    if missing:
        problems.append(f"{len(missing)} missing; run in Browser or cypher-shell: {'; '.join(missing)};")
    if others:
        problems.append(f"names of graphmem taken by others: {'; '.join(others)}; rename or drop those, and look again")
    if failed:
        problems.append(f"failed: {', '.join(failed)}; drop them, and run graphmem doctor again for how to make them")
    if building:
        problems.append(f"being built: {', '.join(building)}; wait and look again")
    return not problems, " ".join(problems) or f"{len(expected)}, all online"


def _constraints(database: Database) -> Finding:
    """Name the constraints of others that may refuse what graphmem writes: its nodes have their labels as well."""
    expected = _expected()
    rows: list[tuple[str, list[str], list[str]]] = database.read("unique_constraints")
    labels = {*OUR_LABELS, *TYPE_LABELS, *TYPES}
    foreign = [
        f"{name} on :{label} ({', '.join(keys)})"
        for name, (label, *_), keys in rows
        if name not in expected and label in labels and _WRITTEN.issuperset(keys)
    ]
    if not foreign:
        return True, "none of others on labels of graphmem"
    return False, f"of others: {'; '.join(foreign)}: they may refuse writes; give graphmem a database of its own"


class _Definition(NamedTuple):
    """Labels, properties and kind of an index; `kind` is RANGE, FULLTEXT or VECTOR."""

    labels: tuple[str, ...]
    properties: tuple[str, ...]
    kind: str


def _definition(statement: str) -> _Definition:
    head, _, on = re.split(r"\b(ON|REQUIRE)\b", statement.partition("OPTIONS")[0], maxsplit=1)
    labels = tuple(sorted(re.findall(r"\w+", "".join(re.findall(r":([\w|]+)", head)))))
    kind = next((kind for kind in ("FULLTEXT", "VECTOR") if f" {kind} " in head), "RANGE")
    return _Definition(labels, tuple(re.findall(r"\b[a-z]\.(\w+)", on)), kind)


def _expected() -> dict[str, str]:
    """Return name → statement of every constraint and index that the migrations leave behind."""
    made: dict[str, str] = {}
    for _, statements in migrations().values():
        for statement in statements:
            if (match := _NAMED.match(statement)) is None:
                continue
            if match[1] == "CREATE":
                made[match[2]] = " ".join(statement.split())
            else:
                made.pop(match[2], None)
    return made


def _reading(database: Database) -> Finding:
    return True, f"allowed; scopes with data: {len(database.read('scopes'))}"


def _writing(database: Database) -> Finding:
    return _tried(database, "try_write", "nothing can be taken in; recall works")


def _making_indexes(database: Database) -> Finding:
    return _tried(database, "try_index", "the next version of graphmem may need to; open it once as a user who may")


def _tried(database: Database, name: str, without: str) -> Finding:
    """Run a query in a transaction that is rolled back."""

    def attempt(transaction: Transaction) -> None:
        transaction.run(query(name)).consume()

    try:
        database.attempt(attempt)
    except GraphMemError as error:
        return False, f"{error}; until then {without}"
    return True, "allowed"


def _clock(database: Database) -> Finding:
    (text,) = database.read("server_clock")
    apart = abs(moment(text) - utc_now())
    seconds = f"{apart.total_seconds():.1f} s apart from the server's"
    if apart < _CLOCKS_APART:
        return True, seconds
    return False, f"{seconds}: what is recorded here gets wrong times; set both machines by NTP"


def _round_trip(database: Database) -> Finding:
    taken: list[float] = []
    for _ in range(_ROUND_TRIPS):
        begun = time.perf_counter()
        database.read("server_clock")
        taken.append(time.perf_counter() - begun)
    took = median(taken)
    hint = "" if took < _FAR else ": a recall makes up to six; run it nearer to the server"
    return True, f"{took * 1000:.1f} ms, the median of {_ROUND_TRIPS}{hint}"


def _time_limit(database: Database) -> Finding:
    return True, f"{database.timeout:g} s for a query or a transaction (setting store_timeout)"


def _data_science(database: Database) -> Finding:
    """Report the library and its client; both are optional, without them communities are found in this process."""
    if not database.read("has_gds"):
        return True, "not on this server: communities are found in this process"
    (version,) = database.read("gds_version")
    if find_spec("graphdatascience") is None:
        return True, f"{version}, but no client here to use it: pip install 'graphmem[neo4j]'"
    return True, f"{version}, and its client"
