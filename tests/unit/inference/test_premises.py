"""What a write of facts reads and changes beside its own rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from graphmem import GraphMemory
from graphmem.inference.premises import find_dependents, has_inferred, settle_all, write_facts
from graphmem.inference.service import infer
from graphmem.models import INFERRED_BY, PREMISES, Changes, Edge, EdgeExpiry, EdgeQuery, Removal, Scope
from graphmem.ontology import DEFAULT_ONTOLOGY
from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend
from graphmem.testing.rows import day, edge, edge_id, entity, home, put_entities

EVERY = EdgeQuery(versions="all")


def inferred(n: int, source: int, target: int, *premises: int, **fields: Any) -> Edge:
    properties = {INFERRED_BY: "a rule", PREMISES: " ".join(map(edge_id, premises))}
    return edge(n, source, target, kind="inferred", properties=properties, relation="reaches", **fields)


@pytest.fixture
def store() -> GraphBackend:
    """Return a store with a chain of three facts, and what follows from two of them, and from that and the third."""
    store = open_backend("memory://")
    put_entities(store, *(entity(n) for n in range(1, 6)))
    chain = (edge(1, 1, 2, confidence=0.9), edge(2, 2, 3, confidence=0.8), edge(3, 3, 4))
    implied = (inferred(11, 1, 3, 1, 2, confidence=0.8), inferred(12, 1, 4, 11, 3, confidence=0.8))
    write_facts(store, home(), Changes(edges=(*chain, *implied)))
    return store


def there(store: GraphBackend) -> dict[str, Edge]:
    return {row.id: row for row in store.find_edges([home()], EVERY)}


def test_the_first_inferred_fact_marks_its_scope(store: GraphBackend) -> None:
    assert has_inferred(store, home())
    other = open_backend("memory://")
    put_entities(other, entity(1), entity(2))
    write_facts(other, home(), Changes(edges=(edge(1, 1, 2),)))
    assert not has_inferred(other, home())


def test_an_end_is_passed_on_through_all_that_follows(store: GraphBackend) -> None:
    write_facts(store, home(), Changes(expiries=(EdgeExpiry(edge_id(2), day(5), day(6)),)))
    rows = there(store)
    assert [rows[edge_id(n)].valid_to for n in (1, 2, 3, 11, 12)] == [None, day(5), None, day(5), day(5)]
    assert {rows[edge_id(n)].end_reason for n in (11, 12)} == {"a premise ended"}


@pytest.mark.parametrize("end", [5, 0])
def test_the_reason_of_an_end_by_hand_stays(store: GraphBackend, end: int) -> None:
    write_facts(store, home(), Changes(expiries=(EdgeExpiry(edge_id(11), day(8), day(8), reason="she left"),)))
    write_facts(store, home(), Changes(expiries=(EdgeExpiry(edge_id(2), day(end), day(9)),)))
    rows = there(store)
    assert (rows[edge_id(11)].valid_to, rows[edge_id(11)].end_reason) == (day(end), "she left")
    assert rows[edge_id(12)].end_reason == "a premise ended"


def test_a_removal_is_passed_on_through_all_that_follows(store: GraphBackend) -> None:
    assert find_dependents(store, home(), {edge_id(1): there(store)[edge_id(1)]}).keys() == {edge_id(11), edge_id(12)}
    write_facts(store, home(), Changes(removals=(Removal("edge", edge_id(1)),)))
    assert there(store).keys() == {edge_id(2), edge_id(3)}


def test_removing_an_entity_removes_what_its_facts_imply_about_others(store: GraphBackend) -> None:
    write_facts(store, home(), Changes(removals=(Removal("entity", entity(2).id),)))
    assert there(store).keys() == {edge_id(3)}


@pytest.mark.parametrize(
    ("changed", "confidence", "begin"),
    [({"confidence": 0.3}, 0.3, None), ({"valid_from": day(3)}, 0.8, day(3)), ({"confidence": 1.0}, 0.8, None)],
)
def test_changes_of_a_premise_are_taken_over_unless_they_add_to_it(
    store: GraphBackend, changed: dict[str, Any], confidence: float, begin: Any
) -> None:
    write_facts(store, home(), Changes(edges=(there(store)[edge_id(1)].changed(**changed),)))
    row = there(store)[edge_id(12)]
    assert (row.confidence, row.valid_from, row.is_active) == (confidence, begin or edge(1, 1, 2).valid_from, True)


def test_a_premise_that_moves_takes_back_what_follows(store: GraphBackend) -> None:
    write_facts(store, home(), Changes(edges=(there(store)[edge_id(3)].changed(source_id=entity(5).id),)))
    rows = there(store)
    assert rows[edge_id(11)].is_active
    assert rows[edge_id(12)].valid_to == rows[edge_id(12)].valid_from


def test_a_fact_goes_if_a_premise_is_about_other_entities_now(store: GraphBackend) -> None:
    write_facts(store, home(), Changes(edges=(there(store)[edge_id(3)].changed(target_id=entity(5).id),)))
    assert there(store).keys() == {edge_id(1), edge_id(2), edge_id(3), edge_id(11)}


def test_a_stated_fact_takes_the_place_of_the_same_inferred_one(store: GraphBackend) -> None:
    write_facts(store, home(), Changes(edges=(edge(20, 1, 3, relation="reaches"),)))
    rows = there(store)
    assert rows[edge_id(20)].is_active
    assert (rows[edge_id(11)].end_reason, rows[edge_id(11)].superseded_by) == ("stated since", None)
    assert rows[edge_id(12)].end_reason == "a premise ended"


def test_rows_without_their_premises_are_removed_from_a_scope(store: GraphBackend) -> None:
    store.write(home(), Changes(removals=(Removal("edge", edge_id(2)),)))
    store.write(home(), Changes(edges=(inferred(13, 3, 5, 3, confidence=1.0, valid_to=day(9)),)))
    assert settle_all(store, home()) == 2
    assert there(store).keys() == {edge_id(1), edge_id(3), edge_id(13)}
    assert settle_all(store, home()) == 0


def test_adding_facts_reads_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    with GraphMemory.open("memory://", extractor="none", embeddings="none", background=False) as memory:
        memory.add_facts([("Maya", "knows", "Tom")])
        store = memory._engine.backend  # pyright: ignore[reportPrivateUsage]
        asked: list[object] = []
        monkeypatch.setattr(store, "find_job_states", asked.append)
        memory.add_facts([("Maya", "knows", "Ravi"), ("Maya", "knows", "Tom")])
        assert asked == []


def test_an_inference_reads_neither_the_facts_that_it_adds_nor_inferred_ones_where_there_are_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, queries = open_backend("memory://"), list[EdgeQuery]()
    put_entities(store, *(entity(n) for n in range(1, 4)))
    premises = (edge(1, 1, 2, relation="works_at"), edge(2, 2, 3, relation="part_of"))
    store.write(home(), Changes(edges=premises))
    read = store.find_edges

    def find_edges(scopes: Sequence[Scope], query: EdgeQuery, **page: Any) -> list[Edge]:
        queries.append(query)
        return read(scopes, query, **page)

    monkeypatch.setattr(store, "find_edges", find_edges)
    assert infer(store, home(), DEFAULT_ONTOLOGY, limit=10).added == 1
    assert all(query.kinds != ("inferred",) for query in queries)
    assert {i for query in queries for i in query.ids or ()} == {edge_id(1), edge_id(2)}
    assert has_inferred(store, home())
