"""Terms of texts: stems by script, and pairs of characters where words aren't separated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.text.normalize import query_phrases, relation_name
from graphmem.text.terms import stems, terms


def test_stems_join_the_forms_of_a_word() -> None:
    assert stems("Maya works") & stems("working") == {"work"}


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("в новом доме в Москве", "новый дом Москва"),
        ("στα σπίτια των ανθρώπων", "το σπίτι του άνθρωπος"),
        ("लड़कियाँ पढ़ती हैं", "लड़की"),
        ("في المدينة القديمة", "مدينة قديمة"),
    ],
)
def test_forms_of_a_word_in_other_scripts_are_joined(text: str, question: str) -> None:
    assert stems(text) & stems(question)


def test_diacritics_and_possessives_don_t_matter() -> None:
    assert terms("Zoë’s café on the Straße") == terms("Zoe's cafe on the Straße")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("王小明住在上海", ["王小", "小明", "明住", "住在", "在上", "上海"]),
        ("大 阪", ["大", "阪"]),
        ("New iPhone手机 2", ["new", "iphon", "手机", "2"]),
        ("한국어를", ["한국", "국어", "어를"]),
        ("ไทย", ["ไท", "ทย"]),
        ("I love 🦊 and ❤️!", ["love", "🦊", "❤"]),
    ],
)
def test_text_without_spaces_gives_pairs_of_characters_and_emoji_themselves(text: str, found: list[str]) -> None:
    assert terms(text) == found


def test_vowel_signs_belong_to_their_words() -> None:
    assert terms("हिन्दी भाषा।") == [*terms("हिन्दी"), *terms("भाषा")]
    assert relation_name("อาศัยอยู่ที่") == "อาศัยอยู่ที่"


def test_a_name_inside_of_text_without_spaces_is_a_phrase() -> None:
    assert {"王小明", "上海"} <= set(query_phrases("王小明住在上海吗？"))
    assert "지민" in query_phrases("지민은 어디에 살아?")
    assert "上海" in query_phrases("我" * 300 + "王小明住在上海")


@given(st.text(max_size=300))
def test_terms_are_the_same_again_and_have_no_white_space(text: str) -> None:
    assert terms(text) == terms(text)
    assert not any(term.split() != [term] for term in terms(text))
