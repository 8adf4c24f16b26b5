"""Reading recall traces, and the rows that `graphmem_neo4j.groups` stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphmem.models import AsOf, RecallQuery, RecallTrace, Scope, TracedEpisode, TracedFact, TracedSeed
from graphmem_neo4j.connection import Database
from graphmem_neo4j.entities import keys_of
from graphmem_neo4j.rows import moment


def find_recalls(
    database: Database,
    scopes: Sequence[Scope],
    query: RecallQuery,
    *,
    after: str,
    limit: int,
    newest_first: bool,
) -> list[RecallTrace]:
    """Return a page of the traces that match, each with all of its rows."""
    asked = {"ids": query.ids, "facts": query.edge_ids, "episodes": query.episode_ids, "entities": query.entity_ids}
    rows = database.read(
        _way_in(query, newest_first=newest_first),
        scopes,
        scopes=keys_of(scopes),
        after=after,
        limit=limit,
        newest=newest_first,
        **{name: None if ids is None else list(dict.fromkeys(ids)) for name, ids in asked.items()},
    )
    return [_recall_of(row) for row in rows]


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


def _recall_of(row: Sequence[Any]) -> RecallTrace:
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


def recall_row(trace: RecallTrace, facts: Mapping[str, str]) -> dict[str, Any]:
    """Return a trace as ``add_recalls`` takes it; `facts` has the sentences of its edges by id."""
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
