"""Which of the entities found a recall starts from."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from graphmem.models import Entity, EntityHit, Scope
from graphmem.recall.seeds import _hits_of, capped, score_seeds  # pyright: ignore[reportPrivateUsage]
from graphmem.registry import open_backend
from graphmem.results import Seed
from graphmem.testing.rows import entity, home, put_entities, scope_of

THEN = datetime(2026, 1, 1, tzinfo=UTC)


def hit(name: str, *, alias: str | None = None, degree: int = 1, types: int = 1, summary: str = "") -> EntityHit:
    entity = Entity(
        scope=Scope(),
        name=name,
        canonical_name=name.lower(),
        entity_type="concept",
        summary=summary,
        first_seen_at=THEN,
        last_seen_at=THEN,
    )
    return EntityHit(entity, alias, degree, types)


def ranked(hits: list[EntityHit], words: list[str], weight: float = 0.0, limit: int = 10) -> list[str]:
    return [s.name for s in score_seeds(hits, words, structural_weight=weight, limit=limit)]


def test_a_match_in_the_name_beats_one_in_the_summary() -> None:
    assert ranked([hit("Other", summary="about vim"), hit("vim")], ["vim"]) == ["vim", "Other"]


def test_a_whole_word_beats_the_beginning_of_one() -> None:
    assert ranked([hit("artichoke"), hit("art")], ["art"]) == ["art", "artichoke"]


def test_an_alias_hit_counts_though_no_word_matches() -> None:
    [seed] = score_seeds([hit("Robert", alias="bob")], ["bob"], structural_weight=0.0, limit=5)
    assert seed.text == 1.0


def test_both_channels_are_normalised_before_they_are_merged() -> None:
    seeds = score_seeds([hit("Robert", alias="bob"), hit("vim")], ["vim"], structural_weight=0.0, limit=5)
    assert {s.name: s.text for s in seeds} == {"Robert": 1.0, "vim": 1.0}


def test_the_words_of_a_full_name_count_half_for_other_entities() -> None:
    hits = [hit("Anna Holm", degree=9), hit("Anna Berg", alias="anna berg"), hit("Anna Lund, boss", summary="runs it")]
    seeds = score_seeds(hits, ["anna", "berg", "runs"], structural_weight=0.0, limit=5)
    text = {s.name: s.text for s in seeds}
    assert text["Anna Berg"] == 1.0
    assert text["Anna Holm"] < text["Anna Lund, boss"]


def test_structure_is_degree_and_variety() -> None:
    seeds = score_seeds(
        [hit("vim a", degree=10, types=4), hit("vim b", degree=5, types=2)], ["vim"], structural_weight=1.0, limit=5
    )
    assert [s.structural for s in seeds] == pytest.approx([1.0, 0.6 * 0.5 + 0.4 * 0.5])


def test_the_score_blends_text_and_structure_by_the_weight() -> None:
    [seed] = score_seeds([hit("vim", degree=3, types=1)], ["vim"], structural_weight=0.4, limit=5)
    assert seed.score == pytest.approx(1.0 * 0.6 + (0.6 + 0.4 * 0.25) * 0.4)


def test_no_more_than_the_limit() -> None:
    assert len(ranked([hit(f"vim {c}") for c in "abcdef"], ["vim"], limit=2)) == 2


def test_nothing_found_gives_no_seeds() -> None:
    assert ranked([], ["vim"]) == []


def test_entities_of_one_name_in_several_scopes_and_types_are_all_found() -> None:
    store = open_backend("memory://")
    scopes = [home(), scope_of("other"), scope_of("third")]
    wanted: set[str] = set()
    for place, scope in enumerate(scopes):
        rows = [
            entity(10 * place + n, scope, name="Mercury", entity_type=kind)
            for n, kind in enumerate(("planet", "metal", "person"))
        ]
        put_entities(store, *rows)
        wanted.update(row.id for row in rows)
    assert {hit.entity.id for hit in _hits_of(store, scopes, wanted)} == wanted


def seed(name: str) -> Seed:
    return Seed(entity_id=name, name=name, entity_type="person", score=1.0, text=1.0, structural=0.0)


def test_of_one_community_the_best_seeds_stay() -> None:
    seeds = [seed(name) for name in "abcdef"]
    homes = {"a": "x", "b": "x", "c": "x", "d": "y"}
    assert [s.name for s in capped(seeds, homes, cap=2, limit=10)] == ["a", "b", "d", "e", "f"]
    assert [s.name for s in capped(seeds, homes, cap=1, limit=2)] == ["a", "d"]


def test_seeds_of_no_community_are_not_counted() -> None:
    assert len(capped([seed(name) for name in "abcdef"], {}, cap=1, limit=10)) == 6
