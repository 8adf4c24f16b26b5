"""Vectors in a recall: what they give, and that it goes on without them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from graphmem.models import Scope
from graphmem.recall.entity_embeddings import LEAST_COSINE, Vectors, entity_vectors, nearest_entities, query_cosines

SCOPES = (Scope("tests"),)
IDS = ("a", "b", "c")


class Table:
    """Vectors from a table; the question's is (1, 0)."""

    def __init__(self, **vectors: tuple[float, ...]) -> None:
        self.vectors = vectors
        self.asked: list[str] = []

    def of_query(self, query: str) -> Vectors:
        self.asked.append(query)
        return np.array([1.0, 0.0])

    def of_entities(self, scopes: Sequence[Scope], entity_ids: Sequence[str]) -> Vectors:
        return np.array([self.vectors.get(i, (0.0, 0.0)) for i in entity_ids])

    def nearest(self, scopes: Sequence[Scope], question: Vectors, limit: int) -> Sequence[tuple[str, float]]:
        found = sorted(((float(np.dot(v, question)), i) for i, v in self.vectors.items()), reverse=True)
        return [(i, cosine) for cosine, i in found[:limit]]


class Broken(Table):
    """A model that is away."""

    def of_query(self, query: str) -> Vectors:
        raise ConnectionError("the model is away")


def cosines(embeddings: Table | None) -> list[float] | None:
    found = query_cosines(embeddings, SCOPES, "who?", IDS)
    return None if found is None else found.tolist()


@pytest.fixture
def debug(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG, logger="graphmem.recall.entity_embeddings"):
        yield caplog


def test_cosines_are_of_vectors_of_any_length() -> None:
    assert cosines(Table(a=(2.0, 0.0), b=(3.0, 4.0), c=(0.0, 1.0))) == pytest.approx([1.0, 0.6, 0.0])


def test_an_entity_without_a_vector_has_none() -> None:
    assert cosines(Table(a=(1.0, 0.0))) == pytest.approx([1.0, np.nan, np.nan], nan_ok=True)


def test_the_question_is_embedded_once() -> None:
    table = Table(a=(1.0, 0.0))
    cosines(table)
    assert table.asked == ["who?"]


def test_without_a_model_there_are_none() -> None:
    assert cosines(None) is None
    assert entity_vectors(None, SCOPES, IDS) is None


def test_a_failing_model_is_told_at_debug_and_costs_nothing_else(debug: pytest.LogCaptureFixture) -> None:
    assert cosines(Broken(a=(1.0, 0.0))) is None
    assert [(r.levelname, "the model is away" in r.message) for r in debug.records] == [("DEBUG", True)]


@pytest.mark.parametrize("vector", [(1.0, 0.0, 0.0), (np.nan, 0.0)])
def test_vectors_that_do_not_fit_count_as_none(vector: tuple[float, ...], debug: pytest.LogCaptureFixture) -> None:
    assert cosines(Table(a=vector, b=vector, c=vector)) is None
    assert [r.levelname for r in debug.records] == ["DEBUG"]


def test_a_model_with_another_number_of_rows_counts_as_none(debug: pytest.LogCaptureFixture) -> None:
    class Short(Table):
        def of_entities(self, scopes: Sequence[Scope], entity_ids: Sequence[str]) -> Vectors:
            return np.ones((1, 2))

    assert entity_vectors(Short(), SCOPES, IDS) is None
    assert len(debug.records) == 1


def test_what_has_nothing_to_do_with_a_question_is_not_near_it() -> None:
    table = Table(a=(0.9, 0.0), b=(LEAST_COSINE, 0.0), c=(LEAST_COSINE - 0.01, 0.0))
    assert nearest_entities(table, SCOPES, "who?", 10) == [("a", 0.9), ("b", LEAST_COSINE)]


def test_a_failing_model_finds_nothing_near(debug: pytest.LogCaptureFixture) -> None:
    assert nearest_entities(Broken(a=(1.0, 0.0)), SCOPES, "who?", 10) == []
    assert ["the model is away" in r.message for r in debug.records] == [True]
