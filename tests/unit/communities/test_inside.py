"""What a community's fingerprint is made of, and which of its facts are the best."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from blake3 import blake3

from graphmem.communities.graph import CommunityFacts, Facts

# a, b and c are a group, d and e another; the fact "g" lies between the two
NODES = list("abcde")
FACTS = Facts(
    NODES,
    ids=np.array([b"f", b"f2", "ü".encode(), b"g", b"h"]),
    source=np.array([1, 0, 2, 2, 4], dtype=np.int32),
    target=np.array([0, 1, 0, 3, 3], dtype=np.int32),
    confidence=np.ones(5),
    score=np.array([0.5, 0.5, 0.9, 1.0, 0.2], dtype=np.float32),
    begin=np.array([20.0, 20.0, 10.0, 5.0, 30.0]),
)
LABELS = np.array([0, 0, 0, 1, 1])
GROUPED = CommunityFacts(FACTS, LABELS)


def test_a_fingerprint_is_of_the_ids_of_members_and_facts_whatever_their_length() -> None:
    assert GROUPED.fingerprint(0, NODES) == blake3("a\nb\nc\n\nf\nf2\nü".encode()).hexdigest()
    assert GROUPED.fingerprint(1, NODES) == blake3(b"d\ne\n\nh").hexdigest()


def test_a_group_without_facts_has_a_fingerprint_and_no_period() -> None:
    apart = CommunityFacts(FACTS, np.arange(5))
    assert apart.fingerprint(0, NODES) == blake3(b"a\n\n").hexdigest()
    assert apart.period(0) is None
    assert apart.top(0, 3) == []


def test_the_best_facts_come_by_score_and_of_equal_ones_by_id_with_both_ends() -> None:
    assert GROUPED.top(0, 9) == [("ü", (0, 2)), ("f", (0, 1)), ("f2", (0, 1))]
    assert GROUPED.top(0, 1) == [("ü", (0, 2))]
    assert GROUPED.period(0) == (10.0, 20.0)
    assert GROUPED.count(0) == 3


def test_of_equal_scores_the_newest_comes_first() -> None:
    newer = np.array([20.0, 21.0, 10.0, 5.0, 30.0])
    again = CommunityFacts(replace(FACTS, begin=newer), LABELS)
    assert [fact_id for fact_id, _ in again.top(0, 9)] == ["ü", "f2", "f"]


def test_the_most_connected_members_come_first() -> None:
    # a weighs 0.5 + 0.5 + 0.9, b 0.5 + 0.5, c 0.9: "g" leads out of the group
    assert GROUPED.central(0, 3) == [0, 1, 2]
    assert GROUPED.central(1, 1) == [3]
