"""An entity with very many facts is read through indexes, and gives what any other store gives."""

from __future__ import annotations

import random
from collections.abc import Generator
from datetime import timedelta
from typing import Any

import pytest

from graphmem.models import AsOf, Changes, Corroboration, Edge, EdgeType, ExpandLimits
from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend
from graphmem_cypher import given, query
from graphmem_neo4j import Neo4jBackend
from graphmem_neo4j import open_backend as open_neo4j
from graphmem_neo4j.graph import moment_values, type_names
from tests.integration.neo4j.support import MOMENT, SCOPE, edge, entity, of
from tests.neo4j_server import forget_plans

FACTS = 1200
HUB = entity("hub")
OTHERS = [entity(f"other {number}") for number in range(60)]


def facts() -> list[Edge]:
    """Return facts both ways of all types, some ended, many of the same confidence."""
    chance = random.Random(5)
    found: list[Edge] = []
    for number in range(FACTS):
        source, target = chance.sample([HUB, chance.choice(OTHERS)], 2)
        ended: dict[str, Any] = {"valid_to": MOMENT, "expired_at": MOMENT} if chance.random() < 0.1 else {}
        kind, confidence = chance.choice(list(EdgeType)), chance.choice((0.25, 0.5, 0.75))
        made = edge(
            source, target, f"relation_{number}", edge_type=kind, confidence=confidence, recorded_at=MOMENT, **ended
        )
        found.append(made)
    return found


@pytest.fixture(scope="module")
def stores(empty_neo4j_of_module: str) -> Generator[tuple[Neo4jBackend, GraphBackend], None, None]:
    """Yield this store and the one that is the measure of all, with the same hub."""
    ours, measure = open_neo4j(empty_neo4j_of_module), open_backend("memory://")
    known = facts()
    lowest = min((e for e in known if e.is_active), key=lambda e: (e.confidence, e.id))
    for store in (ours, measure):
        store.write(SCOPE, of(HUB, *OTHERS))
        store.write(SCOPE, Changes(edges=tuple(known)))
        store.write(SCOPE, Changes(corroborations=(Corroboration(lowest.id, 1.0),)))  # now the best of all
    forget_plans(empty_neo4j_of_module)
    yield ours, measure
    ours.close()
    measure.close()


@pytest.mark.parametrize("max_degree", [1, 10, 300])
@pytest.mark.parametrize("edge_types", [(), (EdgeType.CAUSAL, EdgeType.ENTITY)])
@pytest.mark.parametrize("as_of", [None, AsOf(valid=MOMENT - timedelta(days=1), known=MOMENT), AsOf(known=MOMENT)])
def test_expand_of_a_hub_takes_its_surest_facts(
    stores: tuple[Neo4jBackend, GraphBackend], max_degree: int, edge_types: tuple[EdgeType, ...], as_of: AsOf | None
) -> None:
    limits = ExpandLimits(max_degree=max_degree)
    ours, measure = (
        store.expand([SCOPE], [HUB.id], hops=2, edge_types=edge_types, as_of=as_of, limits=limits).edge_ids
        for store in stores
    )

    assert ours == measure


def test_degree_of_a_hub_is_that_of_its_thousand_surest_facts(stores: tuple[Neo4jBackend, GraphBackend]) -> None:
    ours, measure = (store.search_entities([SCOPE], words=["hub"], phrases=["hub"], limit=5) for store in stores)

    assert ours == measure
    assert [hit.degree for hit in ours] == [1000]


def test_hub_is_not_read_whole(stores: tuple[Neo4jBackend, GraphBackend]) -> None:
    values = {"types": type_names(list(EdgeType)), "per_node": 5, **moment_values(None, MOMENT)}
    seen = 0
    with stores[0].database.session() as session:
        for name in ("expand_hop", "expand_hubs"):
            result: Any = session.run(f"PROFILE {query(name, given(name, values))}", q={"frontier": [HUB.id], **values})
            seen += touched(result.consume().profile)

    assert seen < FACTS


def touched(plan: Any) -> int:
    """Return how many rows and properties a plan has looked at."""
    return plan["args"].get("DbHits", 0) + sum(touched(child) for child in plan.get("children", []))
