"""A refresh ends, whatever others do meanwhile, and asks a model that answers badly no more than it has to."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping
from typing import Any

import pytest

from graphmem.communities.assignment import Assignment
from graphmem.communities.refresh import CommunityRefresh
from graphmem.communities.summaries import AT_ONCE, Description, Material, Summaries
from graphmem.errors import ExtractionFailed, GraphTooLarge
from graphmem.llm.chat import NoReply
from graphmem.models import Changes, CommunityAlgorithm, MembershipQuery, Partition, Scope, new_id
from graphmem.protocols import CommunityDetector, GraphBackend
from graphmem.registry import open_backend
from graphmem.settings import Settings
from graphmem.testing.communities_detect import Pairs, clique
from graphmem.testing.rows import edge, entity, home, put_edges, put_entities


@pytest.fixture
def store() -> Generator[GraphBackend, None, None]:
    store = open_backend("memory://")
    put_entities(store, *(entity(n) for n in range(1, 200)))
    yield store
    store.close()


def connect(store: GraphBackend, pairs: Pairs) -> None:
    put_edges(store, *(edge(0, a, b).changed(id=new_id()) for a, b in pairs))


class Scripted(Summaries):
    """Answers by a function of the members' names."""

    def __init__(self, answer: Callable[[Material], Description | ExtractionFailed]) -> None:
        self.asked: list[str] = []
        self.answer = answer

    def describe(self, materials: Any) -> list[Description | ExtractionFailed]:
        self.asked += [material.names[0] for material in materials]
        return [self.answer(material) for material in materials]


def groups(store: GraphBackend, count: int, size: int, first: int = 1) -> None:
    for n in range(count):
        connect(store, clique(*range(first + n * size, first + (n + 1) * size)))


class TooLarge(CommunityDetector):
    """A detector whose store has too little memory for any graph."""

    def detect(
        self, scope: Scope, algorithm: CommunityAlgorithm = "label_propagation", seed: Mapping[str, str] | None = None
    ) -> Partition:
        """Refuse."""
        raise GraphTooLarge("GDS needs 3 GiB")


@pytest.mark.parametrize("algorithm", ["leiden", "label_propagation"])
def test_a_graph_that_the_store_refuses_is_detected_in_process_and_the_result_says_so(
    store: GraphBackend, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if algorithm != "leiden":
        monkeypatch.setitem(sys.modules, "graspologic_native", None)
    groups(store, 2, 3)
    refresh = CommunityRefresh(store, Settings())
    monkeypatch.setattr(type(store), "community_detector", TooLarge())
    done = refresh.refresh(home())
    assert (done.communities, done.algorithm) == (2, algorithm)
    assert done.fallback == "detected in this process: GDS needs 3 GiB"


def test_a_refresh_ends_though_somebody_is_assigned_each_time(
    store: GraphBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups(store, 2, 3)
    refresh = CommunityRefresh(store, Settings())
    refresh.refresh(home())
    connect(store, [(10, 1)])
    plan, plans = CommunityRefresh._plan, [0]  # pyright: ignore[reportPrivateUsage]

    def planned(self: CommunityRefresh, *args: Any) -> Any:
        result = plan(self, *args)
        plans[0] += 1
        connect(store, [(20 + plans[0], 4)])
        while not Assignment(store).step(home()):
            pass
        return result

    monkeypatch.setattr(CommunityRefresh, "_plan", planned)
    refresh.refresh(home())
    assert plans[0] > 1
    members = store.find_memberships([home()], MembershipQuery(level=0))
    assert len(members) == 7 + plans[0]
    assert len({m.entity_id for m in members}) == len(members)


def test_bad_answers_about_some_do_not_keep_the_others_from_being_described(store: GraphBackend) -> None:
    bad = {f"Entity {n}" for n in range(1, 1 + 6 * 2 * AT_ONCE)}
    groups(store, 2 * AT_ONCE, 6)
    groups(store, 5, 3, first=1 + 6 * 2 * AT_ONCE)

    def answer(material: Material) -> Description | ExtractionFailed:
        return ExtractionFailed("no") if bad & {*material.names} else Description("All", "All of them know all.")

    done = CommunityRefresh(store, Settings(), summaries=Scripted(answer)).refresh(home())
    assert (done.summarized, done.failed) == (5, 2 * AT_ONCE)


def test_a_model_that_is_away_is_asked_once_and_about_others_the_next_time(
    store: GraphBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups(store, 3 * AT_ONCE, 3)
    scripted = Scripted(lambda _: NoReply("away"))
    refresh = CommunityRefresh(store, Settings(), summaries=scripted)
    assert refresh.refresh(home()).failed == 3 * AT_ONCE
    first, scripted.asked = set(scripted.asked), []
    assert len(first) == 2 * AT_ONCE
    written: list[Changes] = []
    write = store.write

    def watched(scope: Scope, changes: Changes) -> None:
        written.append(changes)
        write(scope, changes)

    monkeypatch.setattr(store, "write", watched)
    refresh.refresh(home())
    assert len(set(scripted.asked) - first) == AT_ONCE
    assert written == []


def test_while_the_model_is_away_what_changed_is_written_once(
    store: GraphBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups(store, 1, 4)
    answers: list[Description | ExtractionFailed] = [NoReply("away")] * 2
    answers.append(Description("All", "All of them know all."))
    refresh = CommunityRefresh(store, Settings(), summaries=Scripted(lambda _: answers.pop()))
    refresh.refresh(home())
    connect(store, [(1, 9)])
    assert refresh.refresh(home()).failed == 1
    assert refresh.refresh(home()).updated == 0
