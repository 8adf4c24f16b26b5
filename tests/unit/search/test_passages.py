"""Which part of a text is quoted for a question."""

from __future__ import annotations

import pytest

from graphmem.search.passages import passage, term_weight_of, term_weights

WEIGHTS = {"chess": 1.0, "porto": 2.0}


def test_a_short_text_is_quoted_in_full() -> None:
    assert passage("  We play chess.  ", WEIGHTS, 20) == "We play chess."


def test_the_sentence_with_most_terms_is_quoted() -> None:
    text = "We play chess. " + "It rains again today. " * 20 + "In Porto they play chess. " + "It rains again. " * 20
    assert "In Porto they play chess." in passage(text, WEIGHTS, 60)
    assert passage(text, {"chess": 1.0}, 60).startswith("We play chess.")


def test_of_text_without_spaces_the_part_with_the_terms_is_quoted() -> None:
    text = "今天天气很好。" * 30 + "王小明住在上海。" + "我们去公园。" * 30
    weights = {"王小": 1.0, "小明": 1.0, "上海": 1.0}
    assert "王小明住在上海。" in passage(text, weights, 40)
    assert "上海" in passage(text.replace("。", "、"), weights, 40)


def test_a_passage_is_extended_to_the_sentence_before() -> None:
    text = "Zero is here. One is here. Two is in Porto. Three is here. Four is here."
    assert passage(text, WEIGHTS, 35) == "…One is here. Two is in Porto.…"


def test_without_a_match_the_beginning_is_quoted() -> None:
    assert passage("One is here. Two is here. Three is here.", WEIGHTS, 20) == "One is here.…"


@pytest.mark.parametrize(
    "text", ["word " * 300, "x" * 1000, "\n" * 500 + "chess", "a. " * 400, "Porto " * 100 + "chess! " * 90]
)
@pytest.mark.parametrize("most", [20, 100])
def test_a_passage_is_never_longer_than_allowed(text: str, most: int) -> None:
    found = passage(text, WEIGHTS, most)
    assert 0 < len(found) <= most


def test_a_long_sentence_is_cut_at_words_around_a_match() -> None:
    assert "porto" in passage("word " * 200 + "porto " + "word " * 200, WEIGHTS, 50)


def test_a_rare_term_weighs_more() -> None:
    weights = term_weights("Where do we play chess in Porto?", ["We play chess.", "They play chess.", "Porto"])
    assert weights["porto"] > weights["chess"]
    assert term_weight_of("chess in Porto", weights) == pytest.approx(weights["porto"] + weights["chess"])
    assert term_weight_of("tea", weights) == 0
