"""Plain rankings against values computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graphmem.models import Episode, Scope
from graphmem.search.baselines import Baseline, baseline, fused
from graphmem.search.corpus import Corpus, Unit
from graphmem.search.lexical import Lexicon, Sessions
from graphmem.search.pipeline import reciprocal_ranks

TEXTS = ["chess in Porto", "chess chess club", "a bowl", "Porto"]


def corpus(texts: list[str] = TEXTS, *, session: str | None = None) -> Corpus:
    """Return a corpus of texts; the vector of the one at position i is axis i."""
    made = Corpus(len(texts))
    axes = np.eye(len(texts), dtype=np.float32)
    made.extend(
        [
            Unit(
                episode=Episode(id=f"{i:04d}", scope=Scope("x"), text=text),
                session=session,
                date="5 January 2026" if session else "",
                names=(),
                pieces=frozenset(),
            )
            for i, text in enumerate(texts)
        ],
        [(axes[[i, i]], np.empty((0, 128), np.int8)) for i in range(len(texts))],
    )
    return made


def test_plain_bm25_is_that_of_the_books() -> None:
    lexicon = Lexicon(sessions := Sessions())
    sessions.extend([("1", None), ("2", None), ("3", None)])
    lexicon.extend(
        [(["chess", "porto"], [], False), (["chess", "chess", "club", "bowl"], [], False), (["bowl"], [], False)]
    )
    k1, b, mean = 1.2, 0.75, 7 / 3
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))

    def term(tf: float, length: float) -> float:
        return idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean))

    assert lexicon.plain_scores(["chess"]).tolist() == pytest.approx([term(1, 2), term(2, 4), 0.0])


def test_plain_bm25_knows_no_facts() -> None:
    made = corpus()
    before = made.lexicon.plain_scores(["porto"]).tolist()
    made.lexicon.state(2, ["porto", "made", "of", "clay"])
    assert made.lexicon.plain_scores(["porto"]).tolist() == before


def test_plain_bm25_knows_no_neighbours_and_no_dates() -> None:
    alone, together = corpus(), corpus(session="s")
    for question in (["porto"], ["januari"], ["chess", "club"]):
        assert together.lexicon.plain_scores(question).tolist() == alone.lexicon.plain_scores(question).tolist()
    assert together.lexicon.scores(["porto"]).tolist() != alone.lexicon.scores(["porto"]).tolist()


@pytest.mark.parametrize(
    ("by", "expected"),
    [("bm25", [1, 0]), ("dense", [2, 0, 1, 3]), ("rrf", [1, 0, 2, 3])],
)
def test_each_baseline_ranks_by_its_own_list(by: Baseline, expected: list[int]) -> None:
    vector = np.array([0.5, 0.2, 0.8, 0.1], np.float32)
    assert baseline(corpus(), by, "Who plays chess?", vector, 10) == expected


def test_a_list_ends_at_its_limit() -> None:
    assert baseline(corpus(), "dense", "chess", np.array([0.1, 0.2, 0.3, 0.4], np.float32), 2) == [3, 2]


def test_without_a_model_the_fusion_is_by_words_alone() -> None:
    assert baseline(corpus(), "rrf", "Who plays chess?", None, 10) == [1, 0]
    assert baseline(corpus(), "dense", "Who plays chess?", None, 10) == []


def test_fusion_adds_reciprocal_ranks() -> None:
    # 7: 1/61 + 1/62; 5: 1/62 + 1/61; 9: 1/63: a tie goes to the earlier position
    assert fused([[7, 5], [5, 7, 9]]) == [5, 7, 9]
    assert fused([[1, 2], [2]]) == [2, 1]


def test_each_channel_counts_by_the_reciprocal_of_its_rank_and_60() -> None:
    found = reciprocal_ranks({"words": np.array([3.0, 1.0, 2.0, 0.0]), "graph": np.array([5.0, 5.0, 7.0, 0.0])})
    assert found["words"].tolist() == pytest.approx([1 / 61, 1 / 63, 1 / 62, 0])
    assert found["graph"].tolist() == pytest.approx([1 / 62, 1 / 62, 1 / 61, 0])
