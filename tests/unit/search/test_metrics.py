"""Measures of rankings against values computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from graphmem.search.evaluation import interval, recall_at, reciprocal_rank

RANKING = ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("answers", "k", "expected"),
    [(["a"], 1, 1.0), (["b"], 1, 0.0), (["a", "d"], 2, 0.5), (["a", "d"], 4, 1.0), (["a", "x"], 4, 0.5)],
)
def test_recall_is_the_share_of_the_answers_among_the_first_k(answers: list[str], k: int, expected: float) -> None:
    assert recall_at(RANKING, answers, k) == expected


def test_an_answer_named_twice_counts_once() -> None:
    assert recall_at(RANKING, ["a", "a", "x"], 4) == 0.5


def test_a_short_ranking_misses_what_it_lacks() -> None:
    assert recall_at(["a"], ["a", "b"], 10) == 0.5


@pytest.mark.parametrize(("answers", "expected"), [({"a"}, 1.0), ({"c", "d"}, 1 / 3), ({"x"}, 0.0)])
def test_the_reciprocal_rank_is_that_of_the_first_answer(answers: set[str], expected: float) -> None:
    assert reciprocal_rank(RANKING, answers) == expected


def test_equal_values_have_an_interval_of_a_point() -> None:
    low, high = interval(np.full((20, 2), 0.25))
    assert low.tolist() == high.tolist() == [0.25, 0.25]


def test_the_interval_is_about_two_standard_errors_wide_on_each_side() -> None:
    values = np.array([[0.0], [1.0]] * 200)
    low, high = interval(values)
    standard_error = 0.5 / np.sqrt(400)
    assert low[0] == pytest.approx(0.5 - 1.96 * standard_error, abs=0.01)
    assert high[0] == pytest.approx(0.5 + 1.96 * standard_error, abs=0.01)


def test_a_repeated_run_tells_the_same_interval() -> None:
    values = np.random.default_rng(7).random((50, 3))
    assert [part.tolist() for part in interval(values)] == [part.tolist() for part in interval(values)]


def test_a_difference_that_always_has_one_sign_has_no_zero_in_its_interval() -> None:
    low, _ = interval(np.random.default_rng(7).uniform(0.1, 0.3, (30, 1)))
    assert low[0] > 0.1


def test_one_question_has_an_interval() -> None:
    low, high = interval(np.array([[0.5]]))
    assert (low[0], high[0]) == (0.5, 0.5)


def test_many_questions_are_resampled_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(7).random((40, 2))
    whole = interval(values, rounds=100)
    monkeypatch.setattr("graphmem.search.evaluation._BLOCK", 300)
    assert [part.tolist() for part in interval(values, rounds=100)] == [part.tolist() for part in whole]
