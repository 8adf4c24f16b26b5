"""Names alike and titles in texts against the plain way of finding them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from graphmem.search.names import SAME, Names, SynonymGraph, Titles, names_in

WORDS = "the river of old town north bridge club".split()


def some_names(count: int, chance: random.Random) -> list[str]:
    """Return different names of one to seven words."""
    found: dict[str, None] = {}
    while len(found) < count:
        found[" ".join(chance.choices(WORDS, k=chance.randint(1, 7)))] = None
    return list(found)


def among(pairs: SynonymGraph, numbers: list[int]) -> set[tuple[int, int, float]]:
    """Return what is alike as (number, number, cosine)."""
    place, other, cosine = pairs.among(np.array(numbers, np.int64))
    return {(numbers[p], o, c) for p, o, c in zip(place.tolist(), other.tolist(), cosine.tolist(), strict=True)}


@pytest.mark.parametrize("seed", range(20))
def test_titles_are_found_as_names_are(seed: int) -> None:
    chance = random.Random(seed)
    names, titles = some_names(12, chance), Titles()
    fresh = titles.add(names) + titles.add(names)

    for _ in range(50):
        text = " ".join(chance.choices([*WORDS, "saw"], k=chance.randint(0, 15)))
        assert titles.find(text) == names_in(text, set(fresh))


def test_title_is_new_once_and_a_common_word_is_none() -> None:
    titles = Titles()

    assert titles.add(["old town", "the", "old town"]) == ["old town"]
    assert titles.add(["old town", "river"]) == ["river"]


@pytest.mark.parametrize("batches", [[5000], [1] * 40, [900, 200, 1, 700, 3000, 2, 1]])
def test_pairs_alike_are_those_that_were_joined(batches: list[int]) -> None:
    chance = random.Random(len(batches))
    pairs, expected = SynonymGraph(), dict[tuple[int, int], float]()
    for size in batches:
        new = {tuple(sorted(chance.sample(range(3000), 2))): chance.randint(80, 99) / 128 for _ in range(size)}
        new = {(low, high): weight for (low, high), weight in new.items() if (low, high) not in expected}
        expected.update(new)
        ends = np.array(list(new), np.int64).reshape(-1, 2)
        pairs.join(ends[:, 0], ends[:, 1], np.array(list(new.values()), np.float32))
    both = {(a, b, w) for (low, high), w in expected.items() for a, b in ((low, high), (high, low))}

    assert among(pairs, list(range(3100))) == both
    asked = chance.sample(range(3100), 50)
    assert among(pairs, asked) == {pair for pair in both if pair[0] in asked}
    assert {(n, o, c) for n in asked for o, c in pairs.of(n).items()} == among(pairs, asked)


def test_names_alike_are_those_near_each_other_that_share_a_word() -> None:
    chance = np.random.default_rng(0)
    texts = [f"club {n}" for n in range(60)]
    near = chance.standard_normal((6, 8))[np.arange(60) % 6] + 0.1 * chance.standard_normal((60, 8))
    rows = (near / np.linalg.norm(near, axis=1, keepdims=True)).astype(np.float16)
    names = Names()
    for start, end in ((0, 25), (25, 26), (26, 60)):
        names.learn(texts[start:end], rows[start:end])
    cosines = rows.astype(np.float32) @ rows.astype(np.float32).T
    np.fill_diagonal(cosines, 0)

    synonyms = [set(names.synonyms.of(n)) for n in range(60)]
    assert synonyms == [set(np.flatnonzero(row >= SAME).tolist()) for row in cosines]
    degrees = np.where(cosines >= SAME, cosines, 0).sum(axis=1)
    assert names.degrees(np.arange(60)).tolist() == pytest.approx(degrees.tolist(), abs=1e-5)


def test_a_degree_counts_each_episode_once() -> None:
    names = Names()
    names.learn(["ann lee", "oslo"], None)
    for added in ([(["ann lee", "oslo", "ann lee"], "", "")], [], [(["oslo"], "oslo", "")], []):
        names.extend(added)

    assert names.degrees(np.arange(2)).tolist() == [1, 2]
    assert [names.episodes(number) for number in range(2)] == [[0], [0, 1]]
