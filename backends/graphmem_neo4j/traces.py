"""Recall traces: reads, and their part of a write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphmem.models import AsOf, Changes, RecallQuery, RecallTrace, Scope, TracedEpisode, TracedFact, TracedSeed
from graphmem.protocols import RecallStore, require_no_cursor
from graphmem_neo4j.checked_rows import node_rows
from graphmem_neo4j.connection import Neo4jRole, Transaction
from graphmem_neo4j.existing import NamedRows
from graphmem_neo4j.rows import Row, keys_of, moment


class Neo4jTraces(Neo4jRole, RecallStore):
    """The traces of recalls."""

    def find_recalls(
        self,
        scopes: Sequence[Scope],
        query: RecallQuery,
        *,
        after: str = "",
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[RecallTrace]:
        """Return a page of the traces that match, each with all of its rows."""
        require_no_cursor(after, newest_first=newest_first)
        asked = {"ids": query.ids, "facts": query.edge_ids, "episodes": query.episode_ids, "entities": query.entity_ids}
        rows = self._database.read(
            _way_in(query, newest_first=newest_first),
            scopes,
            scopes=keys_of(scopes),
            after=after,
            limit=limit,
            newest=newest_first,
            **{name: None if ids is None else list(dict.fromkeys(ids)) for name, ids in asked.items()},
        )
        return [_trace_of(row) for row in rows]


def _way_in(query: RecallQuery, *, newest_first: bool) -> str:
    if query.ids is not None:
        return "recalls_by_id"
    if query.edge_ids is not None:
        return "recalls_of_facts"
    if query.episode_ids is not None:
        return "recalls_of_episodes"
    if query.entity_ids is not None:
        return "recalls_of_entities"
    return "newest_recalls_of_scopes" if newest_first else "recalls_of_scopes"


def _trace(row: Row) -> RecallTrace:
    activated = sorted(row[7], key=lambda found: found[1])
    return RecallTrace.trusted(
        id=row[0],
        scope=Scope.from_key(row[1]),
        query=row[2],
        strategy=row[3],
        asked_at=moment(row[4]),
        as_of=None if row[5] is None else AsOf(moment(row[5]), moment(row[6])),
        seeds=tuple(TracedSeed.trusted(entity_id=a[2], score=a[3]) for a in activated if a[0]),
        facts=tuple(
            TracedFact.trusted(entity_id=a[2], score=a[3], edge_id=a[4], hop=a[5], channel=a[6], rank=a[7])
            for a in activated
            if not a[0]
        ),
        episodes=tuple(
            TracedEpisode.trusted(episode_id=f[1], score=f[2], channel=f[3], rank=f[4])
            for f in sorted(row[8], key=lambda found: found[0])
        ),
    )


_trace_of = node_rows("Recall", "id scope query strategy asked_at valid? known? activated* found*", _trace)


class TracePlan:
    """The traces of a write, checked before anything is written; the first of an id stays."""

    def __init__(self, changes: Changes) -> None:
        self._given = changes.recalls
        self._traces: dict[str, RecallTrace] = {}
        self._facts: dict[str, str] = {}

    def validate(self, named: NamedRows) -> None:
        """Raise if an id is taken or a referenced row isn't in the scope."""
        for trace in self._given:
            named.require_free("recall", trace)
            for entity_id in (*(s.entity_id for s in trace.seeds), *(f.entity_id for f in trace.facts)):
                named.require("entity", entity_id)
            for fact in trace.facts:
                named.require_edge(fact.edge_id)
            for found in trace.episodes:
                named.require("episode", found.episode_id)
            if trace.id not in named.kinds:
                self._traces.setdefault(trace.id, trace)
        self._facts = named.facts

    def run(self, transaction: Transaction) -> None:
        """Write the rows."""
        if self._traces:
            transaction.run("add_recalls", rows=[_trace_row(t, self._facts) for t in self._traces.values()])


def _trace_row(trace: RecallTrace, facts: Mapping[str, str]) -> dict[str, Any]:
    """Return a trace as a row of the query ``add_recalls``; `facts` maps the ids of its edges to their sentences."""
    return {
        "values": {
            "id": trace.id,
            "scope": trace.scope.key,
            "domain": trace.scope.domain,
            "project": trace.scope.project_id,
            "query": trace.query,
            "strategy": trace.strategy,
        },
        "asked_at": trace.asked_at.isoformat(),
        "valid": None if trace.as_of is None else trace.as_of.valid.isoformat(),
        "known": None if trace.as_of is None else trace.as_of.known.isoformat(),
        "seeds": [[n, seed.entity_id, float(seed.score)] for n, seed in enumerate(trace.seeds)],
        "facts": [
            [n, f.entity_id, float(f.score), f.edge_id, facts[f.edge_id], f.hop, f.channel, f.rank]
            for n, f in enumerate(trace.facts)
        ],
        "episodes": [
            [n, found.episode_id, float(found.score), found.channel, found.rank]
            for n, found in enumerate(trace.episodes)
        ],
    }
