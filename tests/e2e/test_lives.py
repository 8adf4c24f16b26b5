"""Whatever was merged, parted, evicted and imported: forgetting and undoing don't fail, and leave nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from lives import Life, LifeExtractor, random_life

from graphmem import GraphMemory
from tests.e2e.word_vectors import WordVectors

FOUND = {
    "a further version of a fact has its own sentence": (
        "add 1 - 04-09: A lives_in F #",
        "flush",
        "add 2 - 09-08: A lives_in F",
        "add 3 - 06-08: A lives_in E",
        "flush",
        "forget episode 1",
    ),
    "an end goes on whose key a forgotten fact holds": (
        "add 1 - 05-07: L part_of G; J lives_in F",
        "add 2 s1 08-11: J lives_in H",
        "flush",
        "merge H G",
        "merge F G",
        "forget session s1",
    ),
    "an end goes on under the name of what ended it": (
        "add 1 - 11-15: D lives_in B",
        "add 2 s1 06-11: D lives_in A",
        "flush",
        "merge B A",
        "forget episode 1",
    ),
    "a fact is parted in two of which one takes the key of the other": (
        "add 1 s2 11-12: E knows C",
        "add 2 s2 02-20: D lives_in G",
        "add 3 s2 11-11: B works_at D",
        "flush",
        "merge E B",
        "merge G C",
        "add 4 - 09-11: B knows G",
        "flush",
        "unmerge 1",
    ),
    "the summary came in with a name that was parted": (
        "add 1 - 06-21: B lives_in A",
        "flush",
        "merge A B",
        "add 2 - 01-13: A works_at D #",
        "flush",
        "unmerge 0",
        "forget episode 2",
    ),
    "a parted fact takes over the sentence of another episode": (
        "add 1 s1 10-26: H lives_in E",
        "add 2 s2 10-28: C part_of F #",
        "flush",
        "merge E C",
        "add 3 s1 02-11: E part_of F",
        "flush",
        "unmerge 0",
        "forget session s2",
    ),
    "a parted fact is merged the other way round": (
        "add 1 s1 10-26: A likes D #; D knows B",
        "add 2 - 01-09: A likes D",
        "flush",
        "merge B D",
        "add 3 s2 03-18: A likes B",
        "flush",
        "unmerge 0",
        "merge D B",
        "forget session s1",
    ),
    "a parted fact is in the index": (
        "add 1 - 01-28: F lives_in D",
        "add 2 s1 08-21: C likes A",
        "flush",
        "add 3 s1 03-20: J likes D #",
        "add 4 - 09-24: L lives_in D",
        "merge C D",
        "add 5 s2 10-17: J likes C",
        "flush",
        "unmerge 0",
        "merge J L",
        "search F",
        "forget session s1",
    ),
    "a parted fact is in the ledger": (
        "add 1 s1 07-07: B likes C",
        "add 2 s1 06-23: D works_at A",
        "flush",
        "add 3 - 11-13: C knows B #",
        "merge B A",
        "add 4 - 03-27: C knows A",
        "flush",
        "unmerge 0",
        "merge C A",
        "forget episode 3",
    ),
    "a community tells of an entity that was merged": (
        "add 1 - 02-25: H part_of F; B knows G #",
        "flush",
        "communities",
        "add 2 s1 01-02: C works_at K",
        "add 3 s2 06-14: B likes L",
        "merge G H",
        "unmerge 0",
        "flush",
        "merge H B",
        "merge C G",
        "merge H C",
        "forget episode 1",
    ),
    "another episode names both of the merged": (
        "add 1 s1 12-15: D likes C",
        "add 2 s2 10-19: A likes D",
        "flush",
        "merge D A",
        "forget session s1",
        "add 3 - 05-12: C knows D",
        "flush",
        "unmerge 0",
    ),
    "an episode that names both came before the merge": (
        "add 1 s2 04-11: B likes D",
        "add 2 - 10-10: A part_of B; D works_at B",
        "flush",
        "add 3 s1 03-07: A likes D",
        "merge D A",
        "forget session s2",
        "flush",
        "unmerge 0",
    ),
    "another entity had the name for a time": (
        "add 1 - 11-04: A lives_in G",
        "add 2 - 01-04: A knows D",
        "flush",
        "merge G A",
        "merge G D",
        "unmerge 0",
        "unmerge 0",
        "forget entity G",
    ),
    "an import ends in the middle": (
        "add 1 s2 07-02: A lives_in H #",
        "flush",
        "export",
        "forget episode 1",
        "add 2 s2 04-15: A lives_in F #",
        "flush",
        "import",
        "forget episode 2",
    ),
    "the second name that an entity took over is said again": (
        "add 1 s1 11-20: D part_of B; B knows A",
        "flush",
        "merge A B",
        "merge B D",
        "add 2 - 11-13: C knows B",
        "flush",
        "merge A C",
        "forget session s1",
        "add 3 - 01-20: C part_of D",
    ),
    "a merged name is said again": (
        "add 1 - 06-14: A knows B",
        "add 2 s2 11-26: A knows D",
        "flush",
        "merge A B",
        "forget session s2",
        "add 3 s2 08-23: A part_of B",
        "flush",
        "unmerge 0",
    ),
}

Live = Callable[[list[str]], None]


@pytest.fixture(params=["memory", "sqlite"])
def live(request: pytest.FixtureRequest, tmp_path: Path) -> Live:
    """Return a function that runs steps in a new memory, which is deleted afterwards."""

    def run(steps: list[str]) -> None:
        if request.param == "memory":
            Life(partial(opened, "memory://"), None).run(steps)
            return
        with TemporaryDirectory(dir=tmp_path) as folder:
            Life(partial(opened, f"sqlite:///{folder}/memory.db"), Path(folder)).run(steps)

    return run


def opened(url: str, **settings: Any) -> GraphMemory:
    return GraphMemory.open(url, extractor=LifeExtractor(), embeddings=WordVectors(), background=False, **settings)


@pytest.mark.parametrize("steps", FOUND.values(), ids=FOUND)
def test_a_life_that_once_failed_does_not(live: Live, steps: tuple[str, ...]) -> None:
    live(list(steps))


def live_through(live: Live, seeds: Iterable[int]) -> None:
    for seed in seeds:
        try:
            live(random_life(seed))
        except BaseException as error:
            error.add_note(f"in the life of seed {seed}")
            raise


def test_a_few_random_lives_leave_nothing_behind(live: Live) -> None:
    live_through(live, range(6))


@pytest.mark.soak
@pytest.mark.full
@pytest.mark.timeout(7200)
def test_many_random_lives_leave_nothing_behind(live: Live, rounds: Callable[[int], int]) -> None:
    live_through(live, range(1000, 1000 + rounds(5000)))
