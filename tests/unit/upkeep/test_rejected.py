"""Inferred facts that somebody rejected, when their entities are merged and parted: they aren't inferred again."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphmem import GraphMemory
from graphmem.models import Edge, EdgeQuery, utc_now
from graphmem.protocols import GraphBackend

Triple = tuple[str, str, str]

LAB: list[Triple] = [("Robert", "works_at", "Lab"), ("Lab", "part_of", "Globex"), ("Bobby", "knows", "Zoe")]
BOTH: list[Triple] = [*LAB, ("Bobby", "works_at", "Lab")]
HOLDING: Triple = ("Globex", "part_of", "Holding")
SITE: list[Triple] = [("Ann", "works_at", "Robert"), ("Robert", "part_of", "Globex"), ("Bobby", "knows", "Zoe")]
SITES: list[Triple] = [*SITE, ("Bobby", "part_of", "Globex")]


@pytest.fixture(params=["memory", "sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GraphMemory]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/memory.db"
    with GraphMemory.open(url, extractor="none", embeddings="none", background=False) as memory:
        yield memory


def backend_of(memory: GraphMemory) -> GraphBackend:
    return memory._engine.backend  # pyright: ignore[reportPrivateUsage]


def inferred(memory: GraphMemory) -> dict[Triple, Edge]:
    """Return the inferred facts that hold, and those that were ended by hand, by their names."""
    query = EdgeQuery(kinds=("inferred",), versions="all")
    edges = list(backend_of(memory).all_edges([memory.scope], query))
    ids = {end for edge in edges for end in (edge.source_id, edge.target_id)}
    names = {i: entity.name for i, entity in backend_of(memory).get_entities([memory.scope], sorted(ids)).items()}
    return {
        (names[edge.source_id], edge.relation, names[edge.target_id]): edge
        for edge in edges
        if edge.is_active or edge.end_reason == "not so"
    }


def is_rejected(memory: GraphMemory, wrong: Triple) -> bool:
    return inferred(memory)[wrong].end_reason == "not so"


def reject(memory: GraphMemory, facts: list[Triple], wrong: Triple, *, end: bool = False) -> None:
    """Tell some facts, infer, and retract or end one of the inferred ones."""
    if facts:
        memory.add_facts(facts, occurred_at="2024-01-01T00:00:00Z")
    memory.admin.infer()
    edge = inferred(memory)[wrong]
    if end:
        memory.end(edge.id, reason="not so")
    else:
        memory.retract(edge.id, reason="not so")
    memory.admin.infer()
    assert is_rejected(memory, wrong)


@pytest.mark.parametrize("end", [False, True], ids=["retracted", "ended"])
@pytest.mark.parametrize(
    ("facts", "wrong"),
    [
        pytest.param(LAB, ("Robert", "works_at", "Globex"), id="of the merged one"),
        pytest.param(BOTH, ("Robert", "works_at", "Globex"), id="a premise is folded"),
        pytest.param(BOTH, ("Bobby", "works_at", "Globex"), id="of the kept one"),
        pytest.param([*LAB, HOLDING], ("Robert", "works_at", "Holding"), id="follows from an inferred one"),
        pytest.param([*BOTH, HOLDING], ("Robert", "works_at", "Holding"), id="both"),
        pytest.param(SITE, ("Ann", "works_at", "Globex"), id="of others"),
        pytest.param(SITES, ("Ann", "works_at", "Globex"), id="of others, by a premise that is folded"),
        pytest.param([*SITE, HOLDING], ("Ann", "works_at", "Holding"), id="of others, by an inferred one"),
        pytest.param([*SITES, HOLDING], ("Ann", "works_at", "Holding"), id="of others, by both"),
    ],
)
def test_what_was_rejected_stays_so_in_a_merge_and_its_undoing(
    memory: GraphMemory, facts: list[Triple], wrong: Triple, *, end: bool
) -> None:
    reject(memory, facts, wrong, end=end)
    before = inferred(memory)[wrong]
    [made] = memory.admin.merge("Robert", into="Bobby")
    memory.admin.infer()
    assert is_rejected(memory, ("Bobby" if wrong[0] == "Robert" else wrong[0], *wrong[1:]))
    memory.admin.unmerge(made.id)
    memory.admin.infer()
    after = inferred(memory)[wrong]
    assert (after.id, after.end_reason, after.premises) == (before.id, "not so", before.premises)
    if not end or wrong[0] == "Bobby":
        assert after == before


def test_what_was_rejected_between_the_two_comes_back_with_them(memory: GraphMemory) -> None:
    facts = [("Robert", "works_at", "Lab"), ("Bobby", "works_at", "Lab")]
    memory.add_facts(facts)
    memory.admin.infer()
    [wrong] = inferred(memory)
    reject(memory, [], wrong)
    before = inferred(memory)
    [made] = memory.admin.merge("Robert", into="Bobby")
    assert inferred(memory) == {}
    memory.admin.unmerge(made.id)
    assert inferred(memory) == before
    memory.admin.infer()
    assert inferred(memory) == before


def test_an_end_by_hand_stays_where_it_was(memory: GraphMemory) -> None:
    wrong = ("Robert", "works_at", "Globex")
    reject(memory, LAB, wrong, end=True)
    before = inferred(memory)[wrong]
    [made] = memory.admin.merge("Robert", into="Bobby")
    assert inferred(memory)["Bobby", "works_at", "Globex"].valid_to == before.valid_to
    memory.admin.unmerge(made.id)
    assert inferred(memory)[wrong] == before


@pytest.mark.parametrize("wrong", [("Robert", "works_at", "Globex"), ("Robert", "colleague_of", "Bobby")])
def test_a_rejected_fact_is_erased_with_its_premise_also_from_the_ledger(memory: GraphMemory, wrong: Triple) -> None:
    memory.add_facts([BOTH[0]], occurred_at="2024-01-01T00:00:00Z")
    [premise] = memory.facts("Robert")
    memory.add_facts([*BOTH[1:], ("Robert", "knows", "Zoe")], occurred_at="2024-01-01T00:00:00Z")
    memory.admin.infer()
    if wrong not in inferred(memory):
        wrong = (wrong[2], wrong[1], wrong[0])
    reject(memory, [], wrong)
    [made] = memory.admin.merge("Robert", into="Bobby")
    memory.forget(episode=premise.episode_ids[0])
    exported = io.StringIO()
    memory.admin.export(exported)
    assert " ".join(wrong).replace("_", " ") not in exported.getvalue()
    memory.admin.unmerge(made.id)
    assert wrong not in inferred(memory)


def test_a_merge_in_a_scope_without_inferred_facts_has_none(memory: GraphMemory) -> None:
    memory.add_facts(LAB)
    [made] = memory.admin.merge("Robert", into="Bobby")
    assert not any(edge.is_inferred for edge in made.edges)
    assert made.at <= utc_now()
