"""Names, relations and facts are cleaned the same way everywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.errors import InvalidEntityName, InvalidInput
from graphmem.text.normalize import (
    canonical,
    clean,
    display_name,
    fact_text,
    query_phrases,
    relation_name,
    require_name,
)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("  Ada   Lovelace\t", "Ada Lovelace"),
        ("Ａｄａ", "Ada"),
        ("A\u200bd\u200da", "Ada"),
        ("\u202eAda\u202c", "Ada"),
        ("Ada\x00\x07", "Ada"),
        ("\ufeffAda\u2060", "Ada"),
        ("Ada\nLovelace", "Ada Lovelace"),
        ("Ada\u2066x\u2069", "Adax"),
    ],
)
def test_a_display_name_is_cleaned_but_keeps_its_case(raw: str, shown: str) -> None:
    assert display_name(raw) == shown


def test_no_invisible_character_is_in_a_name() -> None:
    hidden = [*range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0x200B, 0x2010), 0x2060, 0xFEFF]
    hidden += [n for n in (*range(0x20), *range(0x7F, 0xA0)) if not chr(n).isspace()]
    assert [hex(n) for n in hidden if display_name(f"A{chr(n)}da") != "Ada"] == []


@pytest.mark.parametrize(
    "name",
    [
        "\U0001f469\u200d\U0001f680 Ann",  # an astronaut
        "\U0001f468\u200d\U0001f469\u200d\U0001f467 Holm",  # a family
        "\U0001f469\U0001f3fd\u200d\U0001f680 Ann",  # with a skin tone
        "Bo \U0001f3f3\ufe0f\u200d\U0001f308",  # a flag
    ],
)
def test_joined_emoji_stay_one_in_a_name_and_are_found_either_way(name: str) -> None:
    assert display_name(name) == fact_text(name) == name
    assert canonical(name) == canonical(name.replace("\u200d", "")) == name.replace("\u200d", "").lower()
    assert require_name(name) == (name, canonical(name))
    assert canonical(name) in query_phrases(f"Where does {name} live?")


@pytest.mark.parametrize(
    "hidden",
    [
        "A\u200d\U0001f680nn",
        "A\ufe0f\u200d\U0001f680nn",
        "\U0001f680\u200dAnn",
        "\u200d\U0001f680Ann",
        "\U0001f469\u200d\u200d\U0001f680",
        "\U0001f469\u200b\u200d\U0001f680",
        "\U0001f469\u200b\U0001f680",
    ],
)
def test_a_joiner_of_anything_else_is_removed(hidden: str) -> None:
    assert display_name(hidden) == hidden.replace("\u200d", "").replace("\u200b", "")


@given(st.text(alphabet="a \u200d\u200b\ufe0f\U0001f469\U0001f680\u2764"), st.integers(min_value=1, max_value=40))
def test_cleaning_emoji_twice_changes_nothing(text: str, limit: int) -> None:
    once = clean(text, limit)
    assert clean(once, limit) == once
    assert len(once.encode()) <= limit
    assert canonical(canonical(text)) == canonical(text)


def test_lower_case_is_not_case_folding() -> None:
    assert canonical("Groß") == "groß"


def test_a_name_is_cut_to_512_bytes_between_characters() -> None:
    assert canonical("ß" * 1000) == "ß" * 256
    assert canonical("aß" + "ß" * 1000) == display_name("aß" + "ß" * 1000) == "a" + "ß" * 255


def test_a_name_of_a_megabyte_is_cut() -> None:
    assert len(display_name("x" * 1_000_000)) == 512


@given(st.text())
def test_cleaning_twice_changes_nothing(text: str) -> None:
    once = canonical(text)
    assert canonical(once) == once
    assert len(once.encode()) <= 512


@given(st.text(), st.integers(min_value=1, max_value=40))
def test_a_cut_never_exceeds_the_limit(text: str, limit: int) -> None:
    assert len(clean(text, limit).encode()) <= limit


@pytest.mark.parametrize("name", ["", "  ", "ab", "\u200b\u200b\u200b", "!!!", "--- ", "\u202e\u202e"])
def test_a_name_with_too_little_in_it_is_refused(name: str) -> None:
    with pytest.raises(InvalidEntityName):
        require_name(name)


def test_the_refusal_names_the_value_and_the_limit() -> None:
    with pytest.raises(InvalidEntityName, match=r"'ab'.* at least 3"):
        require_name("ab")


def test_the_ontology_allows_short_names() -> None:
    assert require_name("Go", {"go"}) == ("Go", "go")


@pytest.mark.parametrize("name", ["北京", "東京", "🚀🚀🚀", "C++", "O'Brien", "%_\"'*()x"])
def test_names_of_all_kinds_are_taken(name: str) -> None:
    assert require_name(name)[0] == name


@pytest.mark.parametrize(
    ("raw", "stored"),
    [("Works at", "works_at"), ("is-a", "is_a"), ("  LED   TO ", "led_to"), ("works_at", "works_at"), ("a__b", "a_b")],
)
def test_a_relation_is_stored_in_snake_case(raw: str, stored: str) -> None:
    assert relation_name(raw) == stored


def test_a_relation_is_cut_to_256_bytes() -> None:
    assert relation_name("x" * 1000) == "x" * 256
    assert len(relation_name("word " * 200).encode()) <= 256


@pytest.mark.parametrize("raw", ["", "  ", "!?", "\u200b"])
def test_a_relation_without_a_word_is_refused(raw: str) -> None:
    with pytest.raises(InvalidInput, match="relation"):
        relation_name(raw)


def test_a_fact_is_cut_to_2048_bytes() -> None:
    assert len(fact_text("é" * 5000).encode()) == 2048
    assert fact_text("a" + "é" * 5000) == "a" + "é" * 1023
