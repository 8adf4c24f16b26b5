"""What a question is searched by."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.text.normalize import query_phrases, query_words, split_words


def test_stop_words_and_short_words_are_dropped() -> None:
    assert query_words("Where does Maya work at in 2026?") == ["maya", "work", "2026"]


def test_a_question_of_stop_words_only_keeps_them() -> None:
    assert query_words("what about him") == ["what", "about", "him"]


@pytest.mark.parametrize("query", ["", "   ", "?!*()", '"', "%_"])
def test_punctuation_gives_no_words(query: str) -> None:
    assert query_words(query) == []


def test_no_more_than_512_characters_are_read() -> None:
    assert query_words("x" * 600 + " hidden") == ["x" * 512]


def test_diacritics_don_t_matter() -> None:
    assert split_words("Café Zoë") == ["cafe", "zoe"]


def test_a_possessive_is_the_name() -> None:
    assert "maya" in query_words("What is Maya's job?")
    assert "maya" in query_phrases("What is Maya's job?")


def test_phrases_are_runs_of_words() -> None:
    phrases = query_phrases("New York City?")
    assert {"new york city", "new york", "york city", "york"} <= set(phrases)


def test_phrases_keep_punctuation_inside_of_names() -> None:
    assert {"c++", "o'brien"} <= set(query_phrases("Does O'Brien like C++?"))


@given(st.text(max_size=700))
def test_words_are_letters_and_digits_only(query: str) -> None:
    assert all(c.isalnum() for word in query_words(query) for c in word)
