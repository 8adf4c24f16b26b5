"""The full-text index follows the entities, and the score of one scope ignores the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphmem.models import Scope
from graphmem_sqlite import SQLiteBackend
from tests.integration.sqlite.support import MOMENT, SCOPE, entity, of, store_at


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteBackend]:
    store = store_at(tmp_path / "memory.db")
    yield store
    store.close()


def found(store: SQLiteBackend, *words: str, limit: int = 50, scope: Scope = SCOPE) -> set[str]:
    return {hit.entity.name for hit in store.search_entities([scope], words=words, phrases=[], limit=limit)}


def require_in_step(store: SQLiteBackend) -> None:
    """Let FTS5 compare its index with the table (raises where they differ)."""
    store.database.writer.execute("INSERT INTO entity_words (entity_words, rank) VALUES ('integrity-check', 1)")


def test_a_changed_summary_is_found_by_its_new_words(store: SQLiteBackend) -> None:
    anna = entity("Anna", summary="paints houses")
    store.write(SCOPE, of(anna))
    store.write(SCOPE, of(anna.changed(summary="builds boats")))
    assert found(store, "boats") == {"Anna"}


def test_a_changed_summary_is_not_found_by_its_old_words(store: SQLiteBackend) -> None:
    anna = entity("Anna", summary="paints houses")
    store.write(SCOPE, of(anna))
    store.write(SCOPE, of(anna.changed(summary="builds boats")))
    assert found(store, "houses") == set()


def test_an_archived_entity_leaves_the_index_and_comes_back(store: SQLiteBackend) -> None:
    anna = entity("Anna")
    store.write(SCOPE, of(anna))
    store.write(SCOPE, of(anna.changed(archived_at=MOMENT)))
    away = found(store, "anna")
    store.write(SCOPE, of(anna))
    assert (away, found(store, "anna")) == (set(), {"Anna"})


def test_the_index_is_in_step_after_every_kind_of_change(store: SQLiteBackend) -> None:
    anna, ben, eva = entity("Anna", summary="one"), entity("Ben"), entity("Eva")
    store.write(SCOPE, of(anna, ben, eva))
    store.write(SCOPE, of(anna.changed(name="ANNA", summary="two"), ben.changed(archived_at=MOMENT)))
    store.write(SCOPE, of(ben.changed(archived_at=MOMENT, summary="while archived"), eva.changed(access_count=3)))
    store.write(SCOPE, of(ben.changed(summary="back")))
    require_in_step(store)


def test_a_failed_write_leaves_the_index_in_step(store: SQLiteBackend) -> None:
    store.write(SCOPE, of(entity("Anna")))
    with pytest.raises(Exception, match="another row"):
        store.write(SCOPE, of(entity("Ben"), entity("Anna").changed(id="other")))
    require_in_step(store)
    assert found(store, "ben") == set()


def test_a_word_that_is_in_every_name_still_finds_as_many_as_asked(store: SQLiteBackend) -> None:
    store.write(SCOPE, of(*(entity(f"Person {n}") for n in range(3000))))
    assert len(found(store, "person", limit=50)) == 50


def test_a_rare_word_beside_a_common_one_decides(store: SQLiteBackend) -> None:
    store.write(SCOPE, of(*(entity(f"Person {n}") for n in range(3000))))
    assert found(store, "person", "2987", limit=1) == {"Person 2987"}


def test_of_the_rows_of_a_rare_word_those_with_the_common_word_come_first(store: SQLiteBackend) -> None:
    people = [entity(f"Person {n}") for n in range(3000)]
    store.write(SCOPE, of(*people, *(entity(f"House {n} Smith") for n in range(20)), entity("Person Smith")))
    assert found(store, "person", "smith", limit=1) == {"Person Smith"}


def test_two_common_words_find_the_rows_that_hold_both(store: SQLiteBackend) -> None:
    people = [entity(f"Person {n}") for n in range(2000)]
    store.write(SCOPE, of(*people, *(entity(f"Smith {n}") for n in range(2000)), entity("Person Smith")))
    assert found(store, "person", "smith", limit=1) == {"Person Smith"}


def test_a_match_in_the_name_beats_one_in_the_summary(store: SQLiteBackend) -> None:
    others = [entity(f"Town {n}", summary="near Zurich") for n in range(20)]
    store.write(SCOPE, of(*others, entity("Zurich")))
    assert found(store, "zurich", limit=1) == {"Zurich"}


def test_other_scopes_do_not_change_which_rows_are_the_best(store: SQLiteBackend) -> None:
    mine = [entity(f"Thing {n}", summary=f"{'red ' * (n % 7)}{'blue ' * (n % 5)}") for n in range(200)]
    store.write(SCOPE, of(*mine))
    before = found(store, "red", "blue", limit=10)
    for number in range(30):
        other = Scope(f"other {number}")
        store.write(other, of(*(entity(f"Red {n}", scope=other, summary="red red") for n in range(100))))
    assert found(store, "red", "blue", limit=10) == before


def test_what_stands_in_a_word_never_reaches_the_query_language(store: SQLiteBackend) -> None:
    store.write(SCOPE, of(entity("Anna"), entity("Near Or Not")))
    for word in ('"', "*", 'anna" OR "1_near', "NEAR(anna", "name_words:anna", "^anna", "-", "anna\x00", "{}"):
        assert found(store, word) <= {"Anna", "Near Or Not"}
