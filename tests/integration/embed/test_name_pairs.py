"""Resolution with the real model on 300 pairs of names: the figures of docs/concepts/resolution.md don't get worse."""

from __future__ import annotations

import pytest

from graphmem.embed import Embedder
from tests.bench.names import Counts, Half, measure, read_pairs
from tests.integration.embed.support import real_model


def counts(half: Half) -> Counts:
    return measure(read_pairs(half), Embedder(real_model(), timeout=120))


def test_there_are_300_pairs_of_which_half_are_the_same() -> None:
    pairs = read_pairs()
    assert (len(pairs), len(read_pairs("kept"))) == (300, 150)
    assert 145 <= sum(pair.same for pair in pairs) <= 155
    assert len({(p.known, p.new, p.text) for p in pairs}) == 300


@pytest.mark.full(half="looked-at")
@pytest.mark.slow
@pytest.mark.parametrize(("half", "recall"), [("looked-at", 0.4), ("kept", 0.33)])
def test_few_names_are_merged_wrongly_and_the_judge_is_asked_about_most_others(half: Half, recall: float) -> None:
    found = counts(half)
    assert found.merged_wrongly <= 1, found.wrong
    assert found.recall >= recall
    assert found.reach >= 0.9
