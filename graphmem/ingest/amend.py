"""Corrections of single facts by hand: retraction and end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

from graphmem.errors import InvalidInput, NotFound
from graphmem.inference.premises import write_facts
from graphmem.ingest.fact_ledger import FactLedger, episode_sources
from graphmem.models import Changes, Edge, EdgeQuery, Scope, ended, is_retracted, retracted, utc_now
from graphmem.ontology import Ontology
from graphmem.protocols import GraphBackend
from graphmem.text.normalize import fact_text


def retract_fact(backend: GraphBackend, scope: Scope, ontology: Ontology, fact_id: str, reason: str) -> Edge:
    """Record that a fact never held, and let what it had ended go on; a second retraction changes nothing.

    Raises
    ------
    NotFound
        If the scope has no such fact.
    """

    def change(edge: Edge, now: datetime) -> Edge:
        return edge if is_retracted(edge) else retracted(edge, now, fact_text(reason) or "retracted")

    return _amended(backend, scope, ontology, fact_id, change)


def end_fact(
    backend: GraphBackend, scope: Scope, ontology: Ontology, fact_id: str, at: datetime | None, reason: str
) -> Edge:
    """Record when a fact ended, by default now, or sooner than it was known to end.

    Raises
    ------
    NotFound
        If the scope has no such fact.
    InvalidInput
        If it hadn't begun by then, or had ended already.
    """

    def change(edge: Edge, now: datetime) -> Edge:
        end = now if at is None else at
        if end <= edge.valid_from:
            began = f"it begins at {edge.valid_from.isoformat()}; retract it if it never held"
            raise InvalidInput(f"fact {fact_id} can't end at {end.isoformat()}: {began}")
        if edge.valid_to is not None and edge.valid_to <= end:
            raise InvalidInput(f"fact {fact_id} can't end at {end.isoformat()}: it ends at {edge.valid_to.isoformat()}")
        return ended(edge, end, now, fact_text(reason) or "over")

    return _amended(backend, scope, ontology, fact_id, change)


def _amended(
    backend: GraphBackend, scope: Scope, ontology: Ontology, fact_id: str, change: Callable[[Edge, datetime], Edge]
) -> Edge:
    def write() -> Edge:
        edge = backend.get_edges([scope], [fact_id]).get(fact_id)
        if edge is None:
            raise NotFound(f"fact {fact_id} is not in scope {scope}")
        if edge.is_inferred:
            write_facts(backend, scope, Changes(edges=(change(edge, utc_now()),)))
            return backend.get_edges([scope], [fact_id])[fact_id]
        around = EdgeQuery(slots=((edge.source_id, edge.relation),), versions="all")
        single, now = ontology.is_single_valued(edge.relation), utc_now()
        known = {e.id: e for e in backend.all_edges([scope], around)} if single else {}
        ledger = FactLedger({**known, fact_id: edge}.values(), ontology, now, partial(episode_sources, backend, scope))
        ledger.change(change(edge, now))
        write_facts(
            backend,
            scope,
            Changes(expiries=ledger.closings, edges=ledger.edges, corroborations=ledger.supports),
        )
        return backend.get_edges([scope], [fact_id])[fact_id]

    return backend.atomic(write)
