"""Facts that are over in a recall: told as past, below what holds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from graphmem import GraphMemory
from graphmem.models import Changes, Edge
from graphmem.recall.subgraph import PAST_FACTOR
from graphmem.results import Strategy

WHEN = datetime(2026, 1, 10, tzinfo=UTC)
THEN = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(params=["memory://", "sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphMemory]:
    place = tmp_path_factory.mktemp("store") / "memory.db"
    url = f"sqlite:///{place}" if request.param == "sqlite" else request.param
    with GraphMemory.open(url, extractor="none", embeddings="none", background=False) as memory:
        memory.add_facts([("Maya", "uses", "vim"), ("Maya", "uses", "emacs")], occurred_at=WHEN)
        memory.add_facts([("Maya", "lives in", "Rome")], occurred_at=WHEN)
        memory.add_facts([("Maya", "lives in", "Oslo")], occurred_at=THEN)
        yield memory


def end(memory: GraphMemory, target: str) -> None:
    memory.end(next(f.id for f in memory.facts("Maya") if f.target == target), at=THEN)


def recalled(memory: GraphMemory, **options: object) -> list[str]:
    return [f.target for f in memory.recall("What does Maya use?", **options)]  # type: ignore[arg-type]


def test_what_is_over_is_recalled_below_what_holds(memory: GraphMemory) -> None:
    end(memory, "vim")
    found = memory.recall("What does Maya use?")
    targets = [f.target for f in found]
    assert (targets[0], sorted(targets)) == ("emacs", ["Oslo", "emacs", "vim"])
    vim = found[targets.index("vim")]
    assert (vim.valid_to, vim.parts and vim.parts.past, vim.hop, vim.path) == (THEN, PAST_FACTOR, 0, ("Maya",))
    assert "until 2026-02-28" in str(vim)


def test_what_was_replaced_or_retracted_is_not_recalled(memory: GraphMemory) -> None:
    memory.retract(next(f.id for f in memory.facts("Maya") if f.target == "vim"))
    assert sorted(recalled(memory)) == ["Oslo", "emacs"]


@pytest.mark.parametrize("options", [{"as_of": "2026-06-01"}, {"edge_types": ["causal"]}])
def test_a_recall_as_of_a_time_or_of_other_types_has_no_past_facts(
    memory: GraphMemory, options: dict[str, object]
) -> None:
    end(memory, "vim")
    assert "vim" not in recalled(memory, **options)


def visit(memory: GraphMemory, fact: str, day: int) -> None:
    """Store that Maya was in Rome on a day."""
    store = memory._engine.backend  # pyright: ignore[reportPrivateUsage]
    ids = {e.name: e.id for e in memory.entities()}
    edge = Edge(
        scope=memory.scope,
        source_id=ids["Maya"],
        target_id=ids["Rome"],
        relation="visited",
        fact=fact,
        valid_from=WHEN.replace(day=day),
        valid_to=WHEN.replace(day=day + 1),
        kind="event",
    )
    store.write(memory.scope, Changes(edges=(edge,)))


def test_an_event_is_recalled_after_its_day(memory: GraphMemory) -> None:
    visit(memory, "Maya visited Rome", 10)
    past = {f.fact: f.parts and f.parts.past for f in memory.recall("Which city did Maya visit?")}
    assert past["Maya visited Rome"] == 1


@pytest.mark.parametrize("strategy", ["bfs", "spreading", "ppr", "astar"])
def test_of_facts_with_one_key_the_best_is_returned(memory: GraphMemory, strategy: Strategy) -> None:
    for fact, day in (("Maya went there", 12), ("Maya visited Rome by train", 10), ("Maya went there again", 14)):
        visit(memory, fact, day)
    found = memory.recall("How did Maya visit Rome? By train?", strategy=strategy)
    assert [f.fact for f in found if f.relation == "visited"] == ["Maya visited Rome by train"]


@pytest.mark.parametrize("strategy", ["bfs", "spreading", "ppr", "astar"])
def test_every_strategy_reaches_what_is_over(memory: GraphMemory, strategy: str) -> None:
    end(memory, "vim")
    assert "vim" in recalled(memory, strategy=strategy)
