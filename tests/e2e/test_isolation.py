"""Reads through the facade never return anything of a scope that they don't name."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest
from conftest import OpenMemory
from toy import ToyExtractor

from graphmem import GraphMemory, Scope

NAMES = [f"{first} {last}" for first in ("Alice", "Bob", "Carol", "Dave") for last in ("Stone", "Miller", "Jones")]
THINGS = ["Blue Bicycle", "Old Piano", "Red Kite", "City Library", "Summer Plan"]
RELATIONS = ["knows", "visited", "works_at", "likes", "lives_in"]
LOOKALIKES = [
    "default",
    "a",
    "a/p",
    "a%2Fp",
    "A",
    "a ",
    " a",
    "ａ",
    "a//p",
    "p/a",
    "a/p/",
    "%",
    "_",
    "a_",
    "a%",
    "ab",
    "1",
    "11",
    "ä",
]
SCOPES = 50
READERS = 4
KINDS = 5  # of contents; scopes of one kind differ in nothing but the marker
LATER = "2026-02-15T00:00:00Z"

MARKER = re.compile(r"mark(\d+)x")

pytestmark = [pytest.mark.soak, pytest.mark.whole_store]


@dataclass
class Rooms:
    """A store with the same names in many scopes; every text of a scope carries its marker."""

    memory: GraphMemory
    scopes: list[Scope]
    episodes: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    edges: dict[int, list[str]] = field(default_factory=dict[int, list[str]])

    def of(self, number: int) -> GraphMemory:
        return self.memory.in_scope(self.scopes[number])


def scopes() -> list[Scope]:
    """Return scopes, many of which look alike."""
    plain = [Scope(text) for text in LOOKALIKES] + [Scope("a", "p"), Scope("a", "a"), Scope("A", "p"), Scope("a", "p/")]
    return plain + [Scope("many", f"project {i}") for i in range(SCOPES - len(plain))]


def fill(memory: GraphMemory) -> Rooms:
    """Say the same in every scope: alike but for the marker."""
    rooms = Rooms(memory, scopes())
    for number in range(SCOPES):
        fill_one(rooms, number)
    return rooms


def fill_one(rooms: Rooms, number: int) -> Rooms:
    """Fill one scope."""
    mark, chance, room = f"mark{number}x", random.Random(number % KINDS), rooms.of(number)
    room.add_facts(
        {
            "subject": name,
            "relation": relation,
            "object": chance.choice(THINGS),
            "fact": f"{name} {relation} something of {mark}",
            "valid_from": f"2026-01-{day:02}T00:00:00Z",
            "source": f"shared source {day % 3}",
            "metadata": {"mark": mark},
        }
        for day, name in enumerate(NAMES, 1)
        for relation in RELATIONS
    )
    receipts = [
        room.remember(f"{name} | met | {thing} # {mark}", external_id=f"turn {i}", session_id="shared session")
        for i, (name, thing) in enumerate(zip(NAMES, THINGS, strict=False))
    ]
    assert room.flush() == 0
    facts = room.diff("2000-01-01", "2100-01-01", limit=10_000).learned
    rooms.edges[number] = [fact.id for fact in facts]
    rooms.episodes[number] = [receipt.episode_id for receipt in receipts]
    rooms.episodes[number] += [i for fact in facts for i in fact.episode_ids]
    return rooms


Read = Callable[[Rooms, GraphMemory, random.Random, "list[Scope] | None"], str]


def names_and_words(chance: random.Random) -> str:
    words = [*chance.sample(NAMES, 2), *chance.sample(THINGS, 1), f"mark{chance.randrange(SCOPES)}x", "something"]
    return " ".join(chance.sample(words, chance.randint(1, len(words))))


def any_episodes(rooms: Rooms, chance: random.Random) -> list[str]:
    return [chance.choice(rooms.episodes[number]) for number in chance.sample(range(SCOPES), 10)]


def shown(results: object) -> str:
    return repr(results)


READS: dict[str, Read] = {
    "recall": lambda r, m, c, s: shown(m.recall(names_and_words(c), limit=c.randint(1, 50), scopes=s).facts),
    "recall as of": lambda r, m, c, s: shown(
        m.recall(c.choice(NAMES), as_of=LATER, max_hops=c.randint(0, 4), scopes=s).facts
    ),
    "context": lambda r, m, c, s: m.context(names_and_words(c), scopes=s),
    "entities": lambda r, m, c, s: shown(m.entities(limit=c.randint(1, 100), scopes=s)),
    "entities by name": lambda r, m, c, s: shown(m.entities(names_and_words(c), scopes=s)),
    "facts": lambda r, m, c, s: shown(m.facts(c.choice(NAMES + THINGS), scopes=s)),
    "history": lambda r, m, c, s: shown(m.history(c.choice(NAMES), c.choice([None, *RELATIONS]), scopes=s)),
    "history by text": lambda r, m, c, s: shown(m.history(c.choice(NAMES), text="mark", scopes=s)),
    "diff": lambda r, m, c, s: shown(m.diff("2026-01-01", LATER, limit=c.randint(1, 100), scopes=s)),
    "episodes": lambda r, m, c, s: shown(m.episodes(any_episodes(r, c), scopes=s)),
}


@pytest.fixture(scope="module", params=["memory", "sqlite", "neo4j"])
def rooms(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rooms]:
    folder = tmp_path_factory.mktemp("rooms")
    urls = {"memory": f"memory://{folder.name}", "sqlite": f"sqlite:///{folder}/memory.db"}
    url = urls.get(request.param) or request.getfixturevalue("empty_neo4j_of_module")
    with GraphMemory.open(url, extractor=ToyExtractor(), background=False) as memory:
        yield fill(memory)


@pytest.mark.timeout(900)  # 10,000 reads of a server
def test_no_read_returns_anything_of_a_scope_that_it_does_not_name(rooms: Rooms, rounds: Callable[[int], int]) -> None:
    with ThreadPoolExecutor(READERS) as pool:  # a read of a server is mostly waiting
        each = [
            pool.submit(read_at_random, rooms, random.Random(n), rounds(100_000) // READERS) for n in range(READERS)
        ]
        found = sum((reader.result() for reader in each), Counter[str]())
    assert found.keys() == READS.keys()


def read_at_random(rooms: Rooms, chance: random.Random, count: int) -> Counter[str]:
    """Read so many times in any way from any scopes; return how often each way found something."""
    found: Counter[str] = Counter()
    for _ in range(count):
        number = chance.randrange(SCOPES)
        kind = chance.choice(list(READS))
        others = chance.sample(range(SCOPES), 2) if chance.random() < 0.2 else None
        allowed = {str(i) for i in others} if others else {str(number)}
        named = [rooms.scopes[i] for i in others] if others else None
        marks = set(MARKER.findall(READS[kind](rooms, rooms.of(number), chance, named)))
        assert marks <= allowed, f"{kind} of {named or rooms.scopes[number]!r} returned {marks - allowed}"
        found[kind] += bool(marks)
    return +found


def test_reading_two_scopes_returns_both(rooms: Rooms) -> None:
    result = rooms.memory.history(NAMES[0], scopes=[rooms.scopes[3], rooms.scopes[4]])
    assert set(MARKER.findall(shown(result))) == {"3", "4"}


def test_scope_is_counted_by_itself(rooms: Rooms, open_memory: OpenMemory) -> None:
    alone = open_memory("memory://alone")
    alone = fill_one(Rooms(alone, [Scope("default")]), 0)
    expected = alone.of(0).stats()
    for number in range(0, SCOPES, KINDS):
        assert rooms.of(number).stats().model_copy(update={"scope": expected.scope}) == expected


def test_scope_that_holds_nothing_has_nothing_under_any_name_or_id(rooms: Rooms) -> None:
    chance = random.Random(11)
    empty = rooms.memory.in_scope(Scope("a", "nobody"))
    for kind, read in READS.items():
        assert MARKER.findall(read(rooms, empty, chance, None)) == [], kind
    assert empty.stats().edges == 0
