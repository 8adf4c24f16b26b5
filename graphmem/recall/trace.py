"""Traces: what a recall came upon, kept so that "why was this recalled?" can be answered later (spec: recall trace)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np

from graphmem.models import (
    RecallTrace,
    Scope,
    Subgraph,
    TracedFact,
    TracedSeed,
)
from graphmem.protocols import GraphBackend
from graphmem.recall.recall import to_facts
from graphmem.recall.walk import Floats, Positions, Walk
from graphmem.results import RecallResult, Trace, TraceEpisode, TraceFact, TraceSeed

_CONSIDERED = 1000  # facts of a trace: those that scored best; a hub has many that nobody will ask about
_CHANNEL = "graph"


class Observer:
    """Watches a recall; call `trace` when it is done."""

    def __init__(self) -> None:
        self._facts: list[TracedFact] = []

    def __call__(self, graph: Subgraph, walk: Walk, total: Floats) -> None:
        """Note the facts that were scored, the best first.

        Parameters
        ----------
        graph
            m edges.
        walk
            How they were reached.
        total
            float array (m,): their scores.
        """
        found = np.flatnonzero(walk.near >= 0)
        order: Positions = np.lexsort((np.array(graph.edge_ids)[found], -total[found]))  # the last key counts most
        far = np.where(walk.near == graph.source, graph.target, graph.source)
        self._facts = [
            TracedFact(
                edge_id=graph.edge_ids[i],
                entity_id=graph.node_ids[int(far[i])],
                score=float(total[i]),
                hop=len(walk.reached.path(int(walk.near[i]))) - 1,
                channel=_CHANNEL,
            )
            for i in map(int, found[order][:_CONSIDERED])
        ]

    def trace(self, scope: Scope, result: RecallResult, asked_at: datetime) -> RecallTrace:
        """Return the trace of a recall: its seeds, the facts that it returned, then those that it only considered."""
        ranks = {fact.id: rank for rank, fact in enumerate(result.facts, 1)}
        facts = [fact.changed(rank=ranks.get(fact.edge_id)) for fact in self._facts]
        return RecallTrace(
            scope=scope,
            query=result.query,
            strategy=result.strategy,
            asked_at=asked_at,
            as_of=result.as_of,
            seeds=tuple(TracedSeed(entity_id=seed.entity_id, score=seed.score) for seed in result.seeds),
            facts=tuple(sorted(facts, key=lambda fact: (fact.rank is None, fact.rank or 0))),
        )


def explain(backend: GraphBackend, scopes: Sequence[Scope], traces: Sequence[RecallTrace]) -> list[Trace]:
    """Return traces with names and sentences, as they are in the store now; three round trips."""
    edge_ids = list(dict.fromkeys(fact.edge_id for trace in traces for fact in trace.facts))
    named = dict.fromkeys(seed.entity_id for trace in traces for seed in trace.seeds)
    named.update(dict.fromkeys(fact.entity_id for trace in traces for fact in trace.facts))
    edges = backend.get_edges(scopes, edge_ids)
    facts = {fact.id: fact for fact in to_facts(backend, scopes, list(edges.values()))}
    entities = backend.get_entities(scopes, list(named))
    return [
        Trace(
            id=trace.id,
            query=trace.query,
            strategy=trace.strategy,
            asked_at=trace.asked_at,
            as_of=trace.as_of,
            seeds=tuple(
                TraceSeed(entity_id=entity.id, name=entity.name, entity_type=entity.entity_type, score=seed.score)
                for seed in trace.seeds
                if (entity := entities.get(seed.entity_id)) is not None
            ),
            facts=tuple(
                TraceFact(
                    fact=fact,
                    found_at=entities[row.entity_id].name,
                    score=row.score,
                    hop=row.hop,
                    channel=row.channel,
                    rank=row.rank,
                )
                for row in trace.facts
                if (fact := facts.get(row.edge_id)) is not None and row.entity_id in entities
            ),
            episodes=tuple(
                TraceEpisode(episode_id=row.episode_id, score=row.score, channel=row.channel, rank=row.rank)
                for row in trace.episodes
            ),
        )
        for trace in traces
    ]
