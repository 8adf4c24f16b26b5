"""The factors of a fact's score, against values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graphmem.models import EdgeType
from graphmem.recall import scoring
from graphmem.recall.walks import proximity


def test_confidence_without_retrievals_is_exactly_itself() -> None:
    assert scoring.effective_confidence(np.array([0.37]), np.array([0.0]))[0] == 0.37


def test_retrievals_raise_confidence_by_their_logarithm() -> None:
    expected = 0.5 * (1 + 0.2 * math.log(4))
    assert scoring.effective_confidence(np.array([0.5]), np.array([3.0]))[0] == pytest.approx(expected)


def test_effective_confidence_never_exceeds_one() -> None:
    assert scoring.effective_confidence(np.array([0.9]), np.array([1e9]))[0] == 1.0


def test_proximity_halves_and_thirds() -> None:
    assert proximity(np.array([0, 1, 2])).tolist() == pytest.approx([1, 1 / 2, 1 / 3])


def test_flow_weights_are_those_of_the_table() -> None:
    assert scoring.flow_weight(list(EdgeType)).tolist() == [1.0, 0.9, 1.2, 0.8, 0.5]


def test_without_decay_age_does_not_matter() -> None:
    assert scoring.recency(np.array([0.0, 1e9]), 2e9, 0.0).tolist() == [1.0, 1.0]


def test_a_fact_of_today_counts_double_and_an_old_one_less() -> None:
    day = 86_400.0
    factors = scoring.recency(np.array([10 * day, 9 * day, 0.0]), 10 * day, 1.0)
    assert factors.tolist() == pytest.approx([2.0, 1.5, 1 + 1 / 11])


def test_a_fact_of_the_future_counts_like_one_of_today() -> None:
    assert scoring.recency(np.array([5e9]), 1e9, 2.0)[0] == 2.0


def test_shared_words_are_found_in_any_form_of_the_word() -> None:
    texts = ["Maya works at Globex", "Maya is living in Austin", "Maya met Jonas"]
    assert np.argmax(scoring.shared_words(["work"], texts)) == 0
    assert np.argmax(scoring.shared_words(["lives"], texts)) == 1


def test_a_word_that_all_facts_have_tells_less_than_a_rare_one() -> None:
    shares = scoring.shared_words(["maya", "globex"], ["Maya works at Globex", "Maya met Jonas", "Maya met Ann"])
    assert shares[0] == 1.0
    assert shares[1] == shares[2] < 0.5


def test_words_that_no_fact_has_count_nothing() -> None:
    assert scoring.shared_words(["maya", "zebra"], ["Maya met Jonas"])[0] == 1.0
    assert scoring.shared_words(["zebra"], ["Maya met Jonas"])[0] == 0.0
