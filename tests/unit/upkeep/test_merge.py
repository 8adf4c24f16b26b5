"""Merging entities and undoing it: both sides come back, and what came in since goes to the one it was said of."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from graphmem import GraphMemory
from graphmem.errors import InvalidInput, NotFound
from graphmem.models import Alias, Changes, Edge, EdgeType, Entity, Mention, Merge, MergeMethod, Scope
from graphmem.protocols import ExtractedEdge, Extraction, ExtractionRequest, GraphBackend
from graphmem.registry import open_backend
from graphmem.testing.base import Contents, contents, everything, in_threads
from graphmem.testing.rows import (
    day,
    edge,
    edge_id,
    entity,
    entity_id,
    episode,
    episode_id,
    home,
    project,
    put_entities,
    put_episodes,
    put_graph,
)
from graphmem.upkeep.merge import merge_entities
from graphmem.upkeep.unmerge import unmerge

END = datetime.max.replace(tzinfo=UTC)
SEEDS = [*range(10), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(10, 25))]


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GraphBackend]:
    store = open_backend("memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/memory.db")
    yield store
    store.close()


def mention(of: int, in_: int, surface: str | None = None) -> Mention:
    return Mention(
        entity_id=entity_id(of), episode_id=episode_id(in_), surface=surface or f"Entity {of}", seen_at=day(in_)
    )


def rows(found: Contents) -> tuple[object, ...]:
    """Everything but the ledger."""
    return found.entities, found.aliases, sorted(found.edges, key=lambda e: e.id), found.episodes, found.mentions


def key_facts(store: GraphBackend) -> set[tuple[str, str, str]]:
    names = {e.id: e.name for e in contents(store, home()).entities}
    return {(names[e.source_id], e.relation, names[e.target_id]) for e in contents(store, home()).edges}


def test_facts_names_and_mentions_move(store: GraphBackend) -> None:
    put_graph(store, edge(1, 1, 3), edge(2, 4, 2), edge(3, 2, 3, relation="likes", valid_to=day(1)))
    put_episodes(store, 1, 2)
    store.write(home(), Changes(mentions=(mention(1, 1), mention(2, 1), mention(2, 2))))
    [made] = merge_entities(store, home(), ["Entity 2"], "Entity 1")
    found = contents(store, home())
    assert [e.id for e in found.entities] == [entity_id(n) for n in (1, 3, 4)]
    assert [(e.source_id, e.target_id) for e in found.edges] == [
        (entity_id(1), entity_id(3)),
        (entity_id(4), entity_id(1)),
        (entity_id(1), entity_id(3)),
    ]
    assert [e.id for _, e in store.resolve_names(home(), ["entity 2"])] == [entity_id(1)]
    assert [(m.entity_id, m.episode_id, m.surface) for m in found.mentions] == [
        (entity_id(1), episode_id(1), "Entity 1"),
        (entity_id(1), episode_id(2), "Entity 2"),
    ]
    assert found.merges == [made]
    assert (made.method, made.kept_id, made.merged.id) == ("manual", entity_id(1), entity_id(2))


def test_a_fact_that_both_have_is_folded_with_the_better_confidence(store: GraphBackend) -> None:
    put_episodes(store, 1, 2)
    put_graph(
        store,
        edge(1, 1, 3, confidence=0.5, episode_ids=(episode_id(1),)),
        edge(2, 2, 3, confidence=0.8, episode_ids=(episode_id(2),)),
    )
    merge_entities(store, home(), ["Entity 2"], "Entity 1")
    [left] = contents(store, home()).edges
    assert (left.id, left.confidence, left.episode_ids) == (edge_id(1), 0.8, (episode_id(1), episode_id(2)))


def test_a_fact_between_the_two_is_dropped(store: GraphBackend) -> None:
    put_graph(store, edge(1, 1, 2), edge(2, 2, 1))
    merge_entities(store, home(), ["Entity 2"], "Entity 1")
    assert contents(store, home()).edges == []


def test_entities_of_two_types_are_one_under_both(store: GraphBackend) -> None:
    put_entities(store, entity(1, name="Acme", entity_type="organization"), entity(2, name="Acme", entity_type="tool"))
    put_episodes(store, 1)
    store.write(home(), Changes(mentions=(mention(1, 1, "Acme"),)))
    before = contents(store, home())
    [made] = merge_entities(store, home(), [entity_id(2)], entity_id(1))
    assert {(a.alias, a.entity_type) for a in store.find_aliases([home()], [entity_id(1)])} == {
        ("acme", "organization"),
        ("acme", "tool"),
    }
    unmerge(store, home(), made.id)
    assert rows(contents(store, home())) == rows(before)


def test_a_name_that_was_merged_into_another_type_stays_merged(tmp_path: Path) -> None:
    with GraphMemory.open(
        f"sqlite:///{tmp_path}/m.db", extractor="none", embeddings="none", background=False
    ) as memory:
        memory.add_facts(
            [
                {"subject": "Acme", "relation": "uses", "object": "Rust", "subject_type": "organization"},
                {"subject": "Acme Store", "relation": "uses", "object": "Go", "subject_type": "tool"},
            ]
        )
        memory.admin.merge("Acme Store", into="Acme")
        memory.add_facts([{"subject": "Acme Store", "relation": "uses", "object": "Zig", "subject_type": "tool"}])
        assert {fact.target for fact in memory.facts("Acme")} == {"Rust", "Go", "Zig"}


@pytest.mark.parametrize("method", ["manual", "text"])
def test_undoing_a_merge_restores_every_row(store: GraphBackend, method: MergeMethod) -> None:
    put_episodes(store, 1, 2, 3)
    put_graph(
        store,
        edge(1, 1, 3, confidence=0.5, episode_ids=(episode_id(1),)),
        edge(2, 2, 3, confidence=0.8, episode_ids=(episode_id(1), episode_id(2)), properties={"a": 1}),
        edge(3, 1, 2),
        edge(4, 4, 2, valid_to=day(1), expired_at=day(2), superseded_by=edge_id(3)),
    )
    store.write(
        home(),
        Changes(
            entities=(entity(2, summary="says", access_count=3, first_seen_at=day(-5), last_seen_at=day(9)),),
            aliases=(Alias(alias="number two", entity_type="person", entity_id=entity_id(2)),),
            mentions=(mention(1, 1), mention(2, 1), mention(2, 2)),
        ),
    )
    before = contents(store, home())
    [made] = merge_entities(store, home(), ["number two"], "Entity 1", method=method)
    done = unmerge(store, home(), made.id)
    after = contents(store, home())
    assert rows(after) == rows(before)
    assert (done.entity.id, done.facts, done.mentions) == (entity_id(2), 3, 2)
    assert [merge.undone_at for merge in after.merges] == [done.merge.undone_at]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_merges_undone_in_reverse_leave_no_trace(store: GraphBackend, seed: int) -> None:
    before = _random_graph(store, random.Random(seed))
    made: list[Merge] = []
    chance = random.Random(seed)
    left = list(range(8))
    for _ in range(5):
        gone, kept = chance.sample(left, 2)
        left.remove(gone)
        made += merge_entities(store, home(), [entity_id(gone)], entity_id(kept))
    for merge in reversed(made):
        unmerge(store, home(), merge.id)
    assert rows(contents(store, home())) == rows(before)


@pytest.mark.parametrize("seed", SEEDS)
def test_merges_undone_in_any_order_that_is_allowed_leave_no_trace(store: GraphBackend, seed: int) -> None:
    chance = random.Random(seed)
    before = _random_graph(store, chance)
    waiting = merge_entities(store, home(), [entity_id(n) for n in (1, 2, 3)], entity_id(0))
    waiting += merge_entities(store, home(), [entity_id(5)], entity_id(4))
    undo_in_any_order(store, waiting, chance)
    assert rows(contents(store, home())) == rows(before)


def undo_in_any_order(store: GraphBackend, waiting: list[Merge], chance: random.Random) -> None:
    chance.shuffle(waiting)
    undo_in_turn(store, waiting)


def undo_in_turn(store: GraphBackend, made: Sequence[Merge]) -> None:
    """Undo merges in this order; one on which a later one stands waits for that."""
    waiting = list(made)
    while waiting:
        for merge in list(waiting):
            with suppress(InvalidInput):
                unmerge(store, home(), merge.id)
                waiting.remove(merge)


def _random_graph(store: GraphBackend, chance: random.Random) -> Contents:
    put_entities(store, *(entity(n) for n in range(8)))
    put_episodes(store, *range(6))
    edges: dict[tuple[int, int, str], Edge] = {}
    for n in range(40):
        source, target = chance.sample(range(8), 2)
        relation = chance.choice(["knows", "likes"])
        ended = chance.random() < 0.2
        edges[source, target, f"{relation} {n if ended else ''}"] = edge(
            n,
            source,
            target,
            relation=relation,
            confidence=chance.choice([0.2, 0.4, 0.6, 0.8]),
            edge_type=EdgeType.SEMANTIC,
            episode_ids=tuple(episode_id(i) for i in sorted(chance.sample(range(6), 2))),
            valid_to=day(2) if ended else None,
        )
    mentions = {(chance.randrange(8), chance.randrange(6)) for _ in range(20)}
    changes = Changes(edges=tuple(edges.values()), mentions=tuple(mention(*pair) for pair in mentions))
    store.write(home(), changes)
    return contents(store, home())


def test_what_was_said_since_goes_to_the_name_it_was_said_of(store: GraphBackend) -> None:
    put_graph(store, edge(1, 1, 3), edge(2, 2, 4))
    [made] = merge_entities(store, home(), ["Entity 2"], "Entity 1")
    put_episodes(store, 1, 2)
    store.write(
        home(),
        Changes(
            mentions=(mention(1, 1, "Entity 2"), mention(1, 2, "Entity 1")),
            edges=tuple(
                edge(n, 1, 5, relation=relation, recorded_at=made.at, episode_ids=(episode_id(n - 10),))
                for n, relation in ((11, "met"), (12, "likes"))
            ),
            entities=(entity(5),),
        ),
    )
    unmerge(store, home(), made.id)
    assert key_facts(store) == {
        ("Entity 1", "knows", "Entity 3"),
        ("Entity 2", "knows", "Entity 4"),
        ("Entity 2", "met", "Entity 5"),
        ("Entity 1", "likes", "Entity 5"),
    }
    assert [(m.entity_id, m.episode_id) for m in contents(store, home()).mentions] == [
        (entity_id(2), episode_id(1)),
        (entity_id(1), episode_id(2)),
    ]


def test_a_fact_that_was_stated_of_both_since_is_parted_by_its_episodes(store: GraphBackend) -> None:
    put_graph(store, edge(1, 1, 3))
    put_entities(store, entity(2))
    [made] = merge_entities(store, home(), ["Entity 2"], "Entity 1")
    put_episodes(store, 1, 2)
    store.write(
        home(),
        Changes(
            mentions=(mention(1, 1, "Entity 2"), mention(1, 2, "Entity 1")),
            edges=(edge(1, 1, 3, episode_ids=(episode_id(1), episode_id(2))),),
        ),
    )
    unmerge(store, home(), made.id)
    found = {e.source_id: e.episode_ids for e in contents(store, home()).edges}
    assert found == {entity_id(1): (episode_id(2),), entity_id(2): (episode_id(1),)}


def test_a_merge_that_a_later_one_stands_on_is_undone_after_it(store: GraphBackend) -> None:
    put_graph(store, edge(1, 1, 4), edge(2, 2, 3))
    before = contents(store, home())
    [first] = merge_entities(store, home(), ["Entity 1"], "Entity 2")
    [second] = merge_entities(store, home(), ["Entity 2"], "Entity 3")
    with pytest.raises(InvalidInput, match=second.id):
        unmerge(store, home(), first.id)
    unmerge(store, home(), second.id)
    unmerge(store, home(), first.id)
    assert rows(contents(store, home())) == rows(before)


def test_twenty_merges_are_undone_at_once(store: GraphBackend) -> None:
    put_graph(store, *(edge(n, n, 100) for n in range(1, 22)))
    before = contents(store, home())
    made = merge_entities(store, home(), [entity_id(n) for n in range(2, 22)], entity_id(1))
    assert len(contents(store, home()).edges) == 1
    in_threads([lambda merge_id=merge.id: unmerge(store, home(), merge_id) for merge in made])
    assert rows(contents(store, home())) == rows(before)


@pytest.mark.parametrize(
    ("gone", "into", "error", "told"),
    [
        (lambda: ["Entity 1"], lambda: "Entity 1", InvalidInput, lambda: "same entity"),
        (lambda: ["Entity 2", entity_id(1)], lambda: "Entity 1", InvalidInput, lambda: "same entity"),
        (lambda: ["Entity 9"], lambda: "Entity 1", NotFound, lambda: "Entity 9"),
        (lambda: [entity_id(101)], lambda: "Entity 1", NotFound, lambda: entity_id(101)),
        (lambda: ["Entity 1"], lambda: entity_id(101), NotFound, lambda: entity_id(101)),
        (lambda: ["twins"], lambda: "Entity 1", InvalidInput, lambda: "use the id of one"),
        (list, lambda: "Entity 1", InvalidInput, lambda: "at least one entity"),
    ],
)
def test_a_merge_that_cannot_be_says_why_and_changes_nothing(
    store: GraphBackend,
    gone: Callable[[], list[str]],
    into: Callable[[], str],
    error: type[Exception],
    told: Callable[[], str],
) -> None:
    put_graph(store, edge(1, 1, 2))
    put_entities(store, entity(3, name="Twins"), entity(4, name="Twins", entity_type="tool"))
    put_entities(store, entity(101, project()))
    before = everything(store)
    with pytest.raises(error, match=told()):
        merge_entities(store, home(), gone(), into())
    assert everything(store) == before


def test_a_merge_is_undone_once_and_in_its_own_scope(store: GraphBackend) -> None:
    put_graph(store, edge(1, 1, 2))
    [made] = merge_entities(store, home(), ["Entity 2"], "Entity 1")
    for scope in (project(), Scope("nobody")):
        with pytest.raises(NotFound):
            unmerge(store, scope, made.id)
    unmerge(store, home(), made.id)
    with pytest.raises(InvalidInput, match="was already undone"):
        unmerge(store, home(), made.id)


def test_a_name_that_somebody_has_taken_since_is_told(store: GraphBackend) -> None:
    put_entities(store, entity(1), entity(2))
    [made] = merge_entities(store, home(), ["Entity 2"], "Entity 1")
    put_entities(store, entity(3, name="Entity 2"))
    with pytest.raises(InvalidInput, match=entity_id(3)):
        unmerge(store, home(), made.id)


def test_a_fact_whose_other_end_was_forgotten_does_not_come_back(store: GraphBackend) -> None:
    from graphmem.models import Removal

    put_graph(store, edge(1, 1, 3), edge(2, 2, 3), edge(3, 2, 4))
    store.add_episodes(home(), [episode(1)])
    [made] = merge_entities(store, home(), ["Entity 2"], "Entity 1")
    store.write(home(), Changes(removals=(Removal("entity", entity_id(3)),)))
    unmerge(store, home(), made.id)
    assert key_facts(store) == {("Entity 2", "knows", "Entity 4")}


# Facts of differing certainty ------------------------------------------------------------------------


def told(n: int, who: int, certainty: str, on: int, **fields: Any) -> Edge:
    """Return fact n, that somebody knows entity 9, as told on a day in episode n without a beginning."""
    given: dict[str, Any] = {"certainty": certainty, "episode_ids": (episode_id(n),), "recorded_at": day(on)}
    assumed: dict[str, Any] = {"valid_from": day(on), "told_at": day(on), "valid_from_assumed": True}
    return edge(n, who, 9, **{**given, **assumed, **fields})


@pytest.mark.parametrize(
    ("kept", "gone", "current", "other"),
    [
        (("stated", 2), ("hearsay", 5), (1, "stated", (1, 2)), None),
        (("stated", 5), ("hearsay", 2), (1, "stated", (1,)), (2, "hearsay", 2, 5)),
        (("hearsay", 2), ("stated", 5), (2, "stated", (2,)), (1, "hearsay", 2, 5)),
        (("hearsay", 5), ("stated", 2), (2, "stated", (2, 1)), (1, "hearsay", 5, 5)),
        (("plan", 2), ("stated", 5), (2, "stated", (2,)), (1, "plan", 2, 5)),
        (("hearsay", 2), ("possible", 5), (1, "hearsay", (1, 2)), None),
    ],
)
@pytest.mark.parametrize("of", ["source", "target"])
def test_of_a_fact_that_both_have_the_surer_telling_is_current(
    store: GraphBackend,
    kept: tuple[str, int],
    gone: tuple[str, int],
    current: tuple[int, str, tuple[int, ...]],
    other: tuple[int, str, int, int] | None,
    of: str,
) -> None:
    edges = [told(1, 1, *kept, confidence=0.5), told(2, 2, *gone, confidence=0.8)]
    if of == "target":
        edges = [row.changed(source_id=row.target_id, target_id=row.source_id) for row in edges]
    put_episodes(store, 1, 2)
    put_graph(store, *edges)
    before = contents(store, home())
    [made] = merge_entities(store, home(), ["Entity 2"], "Entity 1")
    [active] = (row for row in contents(store, home()).edges if row.is_active)
    n, certainty, episodes = current
    assert (active.id, active.certainty, active.episode_ids) == (
        edge_id(n),
        certainty,
        tuple(map(episode_id, episodes)),
    )
    assert active.confidence == (0.8 if 2 in (n, *episodes) else 0.5)
    past = [row for row in contents(store, home()).edges if not row.is_active]
    assert [(row.id, row.certainty, row.valid_from, row.valid_to, row.superseded_by) for row in past] == (
        [] if other is None else [(edge_id(other[0]), other[1], day(other[2]), day(other[3]), active.id)]
    )
    unmerge(store, home(), made.id)
    assert rows(contents(store, home())) == rows(before)


def test_in_a_merge_no_external_source_makes_a_rumor_sure(store: GraphBackend) -> None:
    external = episode(2, metadata={"trust": "external"}, speaker="Ann")
    store.add_episodes(home(), [episode(1, speaker="Ann"), external])
    put_graph(store, told(1, 1, "hearsay", 2), told(2, 2, "stated", 5))
    merge_entities(store, home(), ["Entity 2"], "Entity 1")
    [left] = contents(store, home()).edges
    assert (left.certainty, left.episode_ids) == ("hearsay", (episode_id(1), episode_id(2)))


def test_a_surer_fact_ends_what_the_kept_entity_is_said_to_do_now(store: GraphBackend) -> None:
    put_episodes(store, 1, 2, 3)
    works = {"relation": "works_at"}
    put_graph(
        store, told(1, 1, "hearsay", 2, **works), told(2, 2, "stated", 5, **works), employed(3, 1, 8, 1, told_at=day(1))
    )
    before = contents(store, home())
    [made] = merge_entities(store, home(), ["Entity 2"], "Entity 1")
    assert ends(store) == {1: (1, day(5)), 2: (1, None), 3: (1, day(5))}
    unmerge(store, home(), made.id)
    assert rows(contents(store, home())) == rows(before)


def test_merges_that_brought_a_fact_in_differing_certainty_are_undone_in_reverse(store: GraphBackend) -> None:
    put_episodes(store, 1, 2, 3)
    put_graph(store, told(1, 1, "possible", 2), told(2, 2, "plan", 1), told(3, 3, "stated", 3))
    before = contents(store, home())
    first, second = merge_entities(store, home(), ["Entity 2", "Entity 3"], "Entity 1")
    with pytest.raises(InvalidInput, match=second.id):
        unmerge(store, home(), first.id)
    undo_in_turn(store, [second, first])
    assert rows(contents(store, home())) == rows(before)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_merges_of_facts_of_any_certainty_leave_no_trace(store: GraphBackend, seed: int) -> None:
    chance = random.Random(seed)
    put_episodes(store, *range(24))
    sure = ("stated", "plan", "hearsay", "possible")
    facts = {(*chance.sample(range(8), 2), chance.choice(["knows", "likes"])): chance.choice(sure) for _ in range(24)}
    put_entities(store, *(entity(n) for n in range(8)))
    edges = (
        told(
            n, 0, certainty, chance.randrange(9), relation=relation, confidence=chance.choice([0.2, 0.4, 0.8])
        ).changed(source_id=entity_id(source), target_id=entity_id(target))
        for n, ((source, target, relation), certainty) in enumerate(facts.items())
    )
    store.write(home(), Changes(edges=tuple(edges)))
    before = contents(store, home())
    waiting = merge_entities(store, home(), [entity_id(n) for n in (1, 2, 3)], entity_id(0))
    waiting += merge_entities(store, home(), [entity_id(n) for n in (5, 0)], entity_id(4))
    keys = [row.key for row in contents(store, home()).edges if row.is_active]
    assert len(keys) == len(set(keys))
    undo_in_any_order(store, waiting, chance)
    assert rows(contents(store, home())) == rows(before)


# Single-valued relations ----------------------------------------------------------------------------


def employed(n: int, who: int, where: int, since: float, **fields: Any) -> Edge:
    return edge(n, who, where, relation="works_at", valid_from=day(since), **fields)


def ends(store: GraphBackend) -> dict[int, tuple[int, object]]:
    """Return who has each fact, and until when."""
    return {int(e.id[:8], 16): (int(e.source_id[:8], 16), e.valid_to) for e in contents(store, home()).edges}


def test_past_and_current_facts_of_both_entities_follow_each_other(store: GraphBackend) -> None:
    past = employed(2, 2, 11, 2, valid_to=day(4), expired_at=day(4), superseded_by=edge_id(3))
    put_graph(store, employed(1, 1, 10, 0), past, employed(3, 2, 12, 4))
    before = contents(store, home())
    [merge] = merge_entities(store, home(), ["Entity 2"], "Entity 1")
    assert ends(store) == {1: (1, day(2)), 2: (1, day(4)), 3: (1, None)}
    unmerge(store, home(), merge.id)
    assert rows(contents(store, home())) == rows(before)


def test_a_fact_of_both_entities_begins_when_the_first_of_them_does(store: GraphBackend) -> None:
    put_graph(store, *(employed(n, n, 10, since, valid_from_assumed=True) for n, since in ((1, 3), (2, 1), (3, 2))))
    before = contents(store, home())
    made = merge_entities(store, home(), ["Entity 2", "Entity 3"], "Entity 1")
    assert [(row.valid_from, row.valid_to) for row in contents(store, home()).edges] == [(day(1), None)]
    undo_in_any_order(store, made, random.Random(1))
    assert rows(contents(store, home())) == rows(before)


@pytest.mark.parametrize("kept", [1, 2])
def test_a_fact_of_both_entities_stays_two_if_another_one_held_in_between(store: GraphBackend, kept: int) -> None:
    past = employed(2, 2, 11, 2, valid_to=day(4), expired_at=day(4), superseded_by=edge_id(3))
    put_graph(store, employed(1, 1, 10, 0), past, employed(3, 2, 10, 4))
    before = contents(store, home())
    [merge] = merge_entities(store, home(), [f"Entity {3 - kept}"], f"Entity {kept}")
    assert ends(store) == {1: (kept, day(2)), 2: (kept, day(4)), 3: (kept, None)}
    unmerge(store, home(), merge.id)
    assert rows(contents(store, home())) == rows(before)


@pytest.mark.parametrize("seed", range(40))
def test_merged_facts_of_a_single_valued_relation_never_hold_together(seed: int) -> None:
    chance = random.Random(seed)
    with GraphMemory.open("memory://", extractor="none", embeddings="none", background=False) as memory:
        for who in ("Maya", "Mia"):
            for month in sorted(chance.sample(range(1, 13), chance.randint(1, 4))):
                place = chance.choice(["Rome", "Oslo", "Bonn"])
                memory.add_facts(
                    [(who, "lives_in", place)], occurred_at=f"2025-{month:02d}-{chance.randint(1, 28):02d}"
                )
        before = [memory.history(who) for who in ("Maya", "Mia")]
        [merge] = memory.admin.merge("Mia", into="Maya")
        homes = sorted((f for f in memory.history("Maya") if f.valid_from != f.valid_to), key=lambda f: f.valid_from)
        assert all(
            one.target == other.target
            or one.valid_from == other.valid_from
            or (one.valid_to or END) <= other.valid_from
            for one, other in combinations(homes, 2)
        )
        memory.admin.unmerge(merge.id)
        assert [memory.history(who) for who in ("Maya", "Mia")] == before


def test_the_employer_that_came_last_ends_the_others(store: GraphBackend) -> None:
    put_graph(
        store, employed(1, 1, 10, 0), employed(2, 2, 11, 5), employed(3, 3, 12, 2), edge(4, 2, 13), edge(5, 1, 14)
    )
    before = contents(store, home())
    made = merge_entities(store, home(), ["Entity 2", "Entity 3"], "Entity 1")
    assert ends(store) == {1: (1, day(2)), 2: (1, None), 3: (1, day(5)), 4: (1, None), 5: (1, None)}
    for merge in made:
        unmerge(store, home(), merge.id)
    assert rows(contents(store, home())) == rows(before)


def test_employers_that_came_at_the_same_time_stay(store: GraphBackend) -> None:
    put_graph(store, employed(1, 1, 10, 0), employed(2, 2, 11, 0))
    merge_entities(store, home(), ["Entity 2"], "Entity 1")
    assert ends(store) == {1: (1, None), 2: (1, None)}


def test_of_homes_since_the_same_time_the_one_that_was_told_last_is_current() -> None:
    with GraphMemory.open("memory://", extractor="none", embeddings="none", background=False) as memory:
        for day, (who, place) in enumerate((("Maya", "Rome"), ("Mia", "Oslo")), start=1):
            home = {"subject": who, "relation": "lives_in", "object": place, "valid_from": "2025-01-01"}
            memory.add_facts([home], occurred_at=f"2025-02-0{day}")
        memory.admin.merge("Mia", into="Maya")
        assert [f.target for f in memory.facts("Maya")] == ["Oslo"]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_merges_of_employed_people_leave_no_trace(store: GraphBackend, seed: int) -> None:
    chance = random.Random(seed)
    put_graph(store, *(employed(n, n, 10 + n, chance.randrange(9)) for n in range(8)))
    before = contents(store, home())
    waiting = merge_entities(store, home(), [entity_id(n) for n in (1, 2, 3)], entity_id(0))
    waiting += merge_entities(store, home(), [entity_id(n) for n in (5, 0)], entity_id(4))
    undo_in_any_order(store, waiting, chance)
    assert rows(contents(store, home())) == rows(before)


@pytest.fixture
def people(store_place: str) -> Iterator[GraphMemory]:
    with GraphMemory.open(store_place, extractor=Statements(), embeddings="none", background=False) as memory:
        yield memory


@pytest.fixture(params=["memory", "sqlite"])
def store_place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/memory.db"


class Statements:
    """Reads ``subject | object``: who works where."""

    name = "statements"
    batch_size = 4

    def extract(self, requests: Sequence[ExtractionRequest]) -> list[Extraction | Exception]:
        stated = [request.episode.text.split(" | ") for request in requests]
        return [Extraction(edges=(ExtractedEdge(who, "works_at", where),)) for who, where in stated]


def say(memory: GraphMemory, who: str, where: str, year: int, **turn: Any) -> None:
    memory.ingest([{"text": f"{who} | {where}", "occurred_at": f"{year}-01-01T00:00:00Z", **turn}])


def employers(memory: GraphMemory, who: str) -> list[tuple[str, int, int | None]]:
    """Return where somebody worked, from when and until when."""
    found = memory.history(who)
    return sorted(
        ((f.target, f.valid_from.year, None if f.valid_to is None else f.valid_to.year) for f in found),
        key=lambda fact: fact[1],
    )


def test_what_a_fact_of_the_other_ended_goes_on_when_they_are_parted(people: GraphMemory) -> None:
    say(people, "Bobby", "Acme", 2020)
    say(people, "Robert", "Globex", 2022)
    [made] = people.admin.merge("Robert", into="Bobby")
    say(people, "Robert", "Hooli", 2024)
    assert employers(people, "Bobby") == [("Acme", 2020, 2022), ("Globex", 2022, 2024), ("Hooli", 2024, None)]
    people.admin.unmerge(made.id)
    assert employers(people, "Bobby") == [("Acme", 2020, None)]
    assert employers(people, "Robert") == [("Globex", 2022, 2024), ("Hooli", 2024, None)]


@pytest.mark.parametrize(
    ("end", "kept"), [(None, (2022, 2022)), ("2021-01-01", (2022, None)), ("2023-01-01", (2022, 2023))]
)
def test_a_fact_that_ended_in_the_meantime_ends_after_it_begins_when_they_are_parted(
    people: GraphMemory, end: str | None, kept: tuple[int, int | None]
) -> None:
    say(people, "Robert", "Acme", 2020)
    say(people, "Bobby", "Acme", 2022)
    [made] = people.admin.merge("Robert", into="Bobby")
    [fact] = people.facts("Bobby")
    assert fact.valid_from.year == 2020
    if end is None:
        people.retract(fact.id)
    else:
        people.end(fact.id, at=end)
    people.admin.unmerge(made.id)
    held = [
        (where, since, until) for where, since, until in employers(people, "Bobby") if since != until or end is None
    ]
    assert held == [("Acme", *kept)]
    assert [where for where, _, _ in employers(people, "Robert")] == ["Acme"]


def test_each_side_has_its_own_facts_one_after_the_other(people: GraphMemory) -> None:
    say(people, "Bobby", "Acme", 2019)
    say(people, "Robert", "Acme", 2020)
    [made] = people.admin.merge("Robert", into="Bobby")
    for who, where, year in (
        ("Robert", "Hooli", 2022),
        ("Bobby", "Initech", 2023),
        ("Robert", "Globex", 2025),
        ("Bobby", "Umbrella", 2024),  # told late: it ended when the next began
    ):
        say(people, who, where, year)
    people.admin.unmerge(made.id)
    assert employers(people, "Bobby") == [("Acme", 2019, 2023), ("Initech", 2023, 2024), ("Umbrella", 2024, None)]
    assert employers(people, "Robert") == [("Acme", 2020, 2022), ("Hooli", 2022, 2025), ("Globex", 2025, None)]


EXTERNAL = {"trust": "external"}


def test_a_merge_ends_no_fact_of_a_person_by_one_of_an_external_source(people: GraphMemory) -> None:
    say(people, "Bobby", "Acme", 2020)
    say(people, "Robert", "Globex", 2022, **EXTERNAL)
    [made] = people.admin.merge("Robert", into="Bobby")
    assert employers(people, "Bobby") == [("Acme", 2020, None), ("Globex", 2022, None)]
    people.admin.unmerge(made.id)
    assert employers(people, "Bobby") == [("Acme", 2020, None)]
    assert employers(people, "Robert") == [("Globex", 2022, None)]


def test_a_merge_ends_no_fact_that_a_person_told_of_herself_by_what_others_say(people: GraphMemory) -> None:
    say(people, "Bobby", "Acme", 2020, speaker="Bobby")
    say(people, "Robert", "Globex", 2022, speaker="Ann")
    people.admin.merge("Robert", into="Bobby")
    assert employers(people, "Bobby") == [("Acme", 2020, None), ("Globex", 2022, None)]


def test_after_a_merge_a_fact_ends_when_a_person_confirmed_the_next(people: GraphMemory) -> None:
    say(people, "Bobby", "Acme", 2020)
    say(people, "Robert", "Globex", 2022, **EXTERNAL)
    say(people, "Robert", "Globex", 2023)
    [made] = people.admin.merge("Robert", into="Bobby")
    assert employers(people, "Bobby") == [("Acme", 2020, 2023), ("Globex", 2022, None)]
    people.admin.unmerge(made.id)
    assert employers(people, "Bobby") == [("Acme", 2020, None)]


def test_external_sources_end_each_others_facts_in_a_merge(people: GraphMemory) -> None:
    say(people, "Bobby", "Acme", 2020, **EXTERNAL)
    say(people, "Robert", "Globex", 2022, **EXTERNAL)
    people.admin.merge("Robert", into="Bobby")
    assert employers(people, "Bobby") == [("Acme", 2020, 2022), ("Globex", 2022, None)]


def test_after_an_unmerge_no_external_fact_of_its_own_ends_that_of_a_person(people: GraphMemory) -> None:
    say(people, "Bobby", "Acme", 2020)
    say(people, "Bobby", "Initech", 2021, **EXTERNAL)
    say(people, "Robert", "Globex", 2022)
    [made] = people.admin.merge("Robert", into="Bobby")
    assert employers(people, "Bobby") == [("Acme", 2020, 2022), ("Initech", 2021, 2022), ("Globex", 2022, None)]
    people.admin.unmerge(made.id)
    assert employers(people, "Bobby") == [("Acme", 2020, None), ("Initech", 2021, None)]


def test_after_an_unmerge_each_is_a_speaker_under_their_own_names(people: GraphMemory) -> None:
    say(people, "Bobby", "Acme", 2020, speaker="Bobby")
    say(people, "Bobby", "Initech", 2021, speaker="Robert")
    say(people, "Robert", "Globex", 2022, speaker="Robert")
    [made] = people.admin.merge("Robert", into="Bobby")
    people.admin.unmerge(made.id)
    assert employers(people, "Bobby") == [("Acme", 2020, None), ("Initech", 2021, None)]


def test_what_goes_on_after_a_forget_is_not_ended_by_an_external_source(people: GraphMemory) -> None:
    say(people, "Bobby", "Acme", 2020)
    say(people, "Bobby", "Initech", 2021, **EXTERNAL)
    say(people, "Bobby", "Globex", 2022, session_id="gone")
    people.forget(session="gone")
    assert employers(people, "Bobby") == [("Acme", 2020, None), ("Initech", 2021, None)]


def test_after_a_forget_a_fact_counts_as_told_by_those_whose_words_are_left(people: GraphMemory) -> None:
    say(people, "Bobby", "Acme", 2020)
    say(people, "Bobby", "Globex", 2021, session_id="gone")
    say(people, "Bobby", "Initech", 2022, **EXTERNAL)
    say(people, "Bobby", "Initech", 2023, session_id="gone")
    assert employers(people, "Bobby") == [("Acme", 2020, 2021), ("Globex", 2021, 2023), ("Initech", 2022, None)]
    people.forget(session="gone")
    assert employers(people, "Bobby") == [("Acme", 2020, None), ("Initech", 2022, None)]


def test_a_fact_goes_on_once_only_external_sources_state_what_ended_it(people: GraphMemory) -> None:
    say(people, "Bobby", "Acme", 2020)
    say(people, "Bobby", "Initech", 2021, **EXTERNAL)
    say(people, "Bobby", "Initech", 2022, session_id="gone")
    say(people, "Bobby", "Initech", 2023, session_id="left")
    assert employers(people, "Bobby") == [("Acme", 2020, 2022), ("Initech", 2021, None)]
    people.forget(session="gone")
    assert employers(people, "Bobby") == [("Acme", 2020, 2022), ("Initech", 2021, None)]
    people.forget(session="left")
    assert employers(people, "Bobby") == [("Acme", 2020, None), ("Initech", 2021, None)]


# Several merges, undone in any order


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_what_several_brought_goes_back_in_any_order(store: GraphBackend, order: tuple[int, ...]) -> None:
    put_episodes(store, 1, 2, 3)
    put_entities(
        store,
        entity(1, confidence=0.5, last_seen_at=day(1), first_seen_at=day(1), access_count=1, summary=""),
        entity(2, confidence=0.7, last_seen_at=day(2), first_seen_at=day(0), access_count=20, summary="second"),
        entity(3, confidence=0.9, last_seen_at=day(4), first_seen_at=day(1), access_count=300, archived_at=day(9)),
        entity(4, confidence=0.8, last_seen_at=day(3), first_seen_at=day(-1), access_count=4000, summary="fourth"),
    )
    put_graph(
        store,
        edge(1, 1, 5, confidence=0.1, episode_ids=(episode_id(1),)),
        edge(2, 2, 5, confidence=0.3, episode_ids=(episode_id(2),)),
        edge(3, 3, 5, confidence=0.3, episode_ids=(episode_id(2), episode_id(3))),
        edge(4, 4, 5, confidence=0.2, episode_ids=(episode_id(3),)),
    )
    she = [mention(of, in_, "she") for of, in_ in [(2, 1), (3, 1), (4, 1), (1, 2), (3, 2), (4, 3)]]
    store.write(home(), Changes(mentions=tuple(she)))
    before = contents(store, home())
    made = merge_entities(store, home(), ["Entity 2", "Entity 3", "Entity 4"], "Entity 1")
    first = made[order[0]]
    unmerge(store, home(), first.id)
    [kept] = (e for e in contents(store, home()).entities if e.id == entity_id(1))
    still = [1, *(n for n in (2, 3, 4) if entity_id(n) != first.merged.id)]
    own = {e.id: e for e in before.entities}
    assert kept.confidence == max(own[entity_id(n)].confidence for n in still)
    assert kept.access_count == sum(own[entity_id(n)].access_count for n in still)
    undo_in_turn(store, [made[n] for n in order[1:]])
    assert rows(contents(store, home())) == rows(before)


def test_an_episode_names_the_kept_one_as_long_as_one_is_merged_that_it_names(store: GraphBackend) -> None:
    put_episodes(store, 1)
    put_entities(store, entity(1), entity(2), entity(3))
    store.write(home(), Changes(mentions=(mention(2, 1), mention(3, 1))))
    first, second = merge_entities(store, home(), ["Entity 2", "Entity 3"], "Entity 1")
    unmerge(store, home(), first.id)
    assert [(m.entity_id, m.surface) for m in contents(store, home()).mentions] == [
        (entity_id(1), "Entity 3"),
        (entity_id(2), "Entity 2"),
    ]
    unmerge(store, home(), second.id)
    assert [m.entity_id for m in contents(store, home()).mentions] == [entity_id(2), entity_id(3)]


def test_what_was_changed_since_stays_in_any_order(store: GraphBackend) -> None:
    put_entities(store, *(entity(n, confidence=n / 10) for n in (1, 2, 3)))
    made = merge_entities(store, home(), ["Entity 2", "Entity 3"], "Entity 1")
    [kept] = contents(store, home()).entities
    store.write(home(), Changes(entities=(kept.changed(confidence=0.95, access_count=7),)))
    for merge in made:
        unmerge(store, home(), merge.id)
    [kept] = (e for e in contents(store, home()).entities if e.id == entity_id(1))
    assert (kept.confidence, kept.access_count) == (0.95, 7)


@st.composite
def merged_graphs(draw: st.DrawFn) -> tuple[list[Entity], list[Edge], list[Mention], list[int]]:
    """Return entities 1 to 6, facts and mentions of theirs, and an order of the merges of 2, 3 and 4 into 1."""
    few = st.sampled_from([0.1, 0.5, 0.9])
    entities = [
        entity(
            n,
            confidence=draw(few),
            last_seen_at=day(draw(st.integers(3, 5))),
            first_seen_at=day(draw(st.integers(0, 2))),
            access_count=draw(st.integers(0, 3)),
            archived_at=draw(st.sampled_from([None, day(9)])),
            summary=draw(st.sampled_from(["", f"who {n} is"])),
        )
        for n in range(1, 7)
    ]
    episodes = st.sets(st.integers(1, 3), min_size=1).map(lambda some: tuple(episode_id(n) for n in sorted(some)))
    keys = draw(st.sets(st.tuples(st.integers(1, 5), st.sampled_from("ab"), st.integers(1, 6)), max_size=8))
    edges = [
        edge(n, source, target, relation=relation, confidence=draw(few), episode_ids=draw(episodes))
        for n, (source, relation, target) in enumerate(sorted(keys))
        if source != target
    ]
    said = draw(st.sets(st.tuples(st.integers(1, 4), st.integers(1, 3)), max_size=8))
    mentions = [mention(of, in_, draw(st.sampled_from(["she", f"Entity {of}"]))) for of, in_ in sorted(said)]
    return entities, edges, mentions, draw(st.permutations([0, 1, 2]))


@pytest.mark.full
@given(merged_graphs())
@hypothesis_settings(max_examples=300, deadline=None)
def test_merges_are_undone_in_any_order(drawn: tuple[list[Entity], list[Edge], list[Mention], list[int]]) -> None:
    entities, edges, mentions, order = drawn
    store = open_backend("memory://")
    put_entities(store, *entities)
    put_episodes(store, 1, 2, 3)
    store.write(home(), Changes(edges=tuple(edges), mentions=tuple(mentions)))
    before = contents(store, home())
    made = merge_entities(store, home(), ["Entity 2", "Entity 3", "Entity 4"], "Entity 1")
    undo_in_turn(store, [made[n] for n in order])
    assert rows(contents(store, home())) == rows(before)
