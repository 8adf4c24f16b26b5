"""The stored facts of a chat are the same however fast its turns come: live, in bulk, and in groups between."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from graphmem import GraphMemory
from graphmem.ingest.extract.spacy import spacy_available
from graphmem.testing.rows import scope_of
from tests.e2e.conftest import OpenMemory

pytest.importorskip("json_repair", reason="json-repair isn't installed (graphmem[langchain])")
pytest.importorskip("langchain_core", reason="LangChain isn't installed (graphmem[langchain])")

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

Said = tuple[str, str, str, str]

# session, time, speaker, text; the sessions overlap, and one of them ends what the other has told
CHAT: list[Said] = [
    ("lunch", "2025-01-10T12:00", "Maya", "I live in Berlin."),
    ("standup", "2025-01-10T12:01", "Jonas", "I work at Globex."),
    ("lunch", "2025-01-10T12:02", "Tom", "I have a dog called Rex."),
    ("standup", "2025-01-10T12:03", "Maya", "I work at Initech."),
    ("lunch", "2025-01-10T12:04", "Jonas", "I love chess."),
    ("standup", "2025-01-10T12:05", "Tom", "I live in Paris."),
    ("lunch", "2025-02-03T12:00", "Jonas", "I no longer work at Globex."),
    ("standup", "2025-02-03T12:01", "Jonas", "I work at Hooli now."),
    ("lunch", "2025-02-03T12:02", "Maya", "I moved to London last week."),
    ("standup", "2025-02-03T12:03", "Tom", "Jonas works at Apple, I heard."),
    ("lunch", "2025-02-03T12:04", "Tom", "I am allergic to peanuts."),
    ("standup", "2025-02-03T12:05", "Maya", "I quit my job at Initech."),
    ("walk", "2025-03-01T12:00", "Maya", "I joined Hooli in February 2025."),
    ("walk", "2025-03-01T12:01", "Tom", "My sister lives in Madrid."),
    ("walk", "2025-03-01T12:02", "Jonas", "I live in Rome."),
    ("walk", "2025-03-01T12:03", "Jonas", "Sorry, I meant Milan."),
    ("call", "2025-03-01T12:04", "Tom", "Rex died yesterday."),
    ("call", "2025-03-01T12:05", "Maya", "I live in London."),
    ("walk", "2025-03-01T12:06", "Tom", "I have worked at Acme since January."),
    ("call", "2025-03-01T12:07", "Tom", "I was laid off today."),
]

# answered late, so that another session ends the fact before it is stored
SLOW = ("I work at Globex.", "I have a dog called Rex.", "I have worked at Acme since January.")

Paces = dict[str, Callable[[int], list[int]]]
PACES: Paces = {
    "live": lambda n: [1] * n,
    "bulk": lambda n: [n],
    "2": lambda n: [2] * n,
    "5": lambda n: [5] * n,
    "random": lambda n: random.Random(5).choices(range(1, 8), k=n),
}

# text → facts (source, relation, target, fields) and ends of known ones (source, relation, target, why)
SCRIPT: dict[str, tuple[list[tuple[Any, ...]], list[tuple[str, str, str, str]]]] = {
    "I live in Berlin.": ([("Maya", "lives_in", "Berlin")], []),
    "I work at Globex.": ([("Jonas", "works_at", "Globex")], []),
    "I have a dog called Rex.": ([("Tom", "has_pet", "Rex")], []),
    "I work at Initech.": ([("Maya", "works_at", "Initech")], []),
    "I love chess.": ([("Jonas", "likes", "chess")], []),
    "I live in Paris.": ([("Tom", "lives_in", "Paris")], []),
    "I no longer work at Globex.": ([], [("Jonas", "works_at", "Globex", "over")]),
    "I work at Hooli now.": ([("Jonas", "works_at", "Hooli")], []),
    "I moved to London last week.": (
        [("Maya", "lives_in", "London", {"valid_from": "2025-01-27"})],
        [("Maya", "lives_in", "Berlin", "over")],
    ),
    "Jonas works at Apple, I heard.": ([("Jonas", "works_at", "Apple", {"certainty": "hearsay"})], []),
    "I am allergic to peanuts.": ([("Tom", "allergic_to", "peanuts")], []),
    "I quit my job at Initech.": ([], [("Maya", "works_at", "Initech", "over")]),
    "I joined Hooli in February 2025.": ([("Maya", "works_at", "Hooli", {"valid_from": "2025-02"})], []),
    "My sister lives in Madrid.": ([("Tom's sister", "lives_in", "Madrid")], []),
    "I live in Rome.": ([("Jonas", "lives_in", "Rome")], []),
    "Sorry, I meant Milan.": ([("Jonas", "lives_in", "Milan")], [("Jonas", "lives_in", "Rome", "corrected")]),
    "Rex died yesterday.": (
        [("Rex", "died", "Tom", {"kind": "event", "valid_from": "2025-02-28"})],
        [("Tom", "has_pet", "Rex", "over")],
    ),
    "I live in London.": ([("Maya", "lives_in", "London")], []),
    "I have worked at Acme since January.": ([("Tom", "works_at", "Acme", {"valid_from": "2025-01"})], []),
    "I was laid off today.": ([], [("Tom", "works_at", "", "over")]),
}


# worked out by hand from the chat
EXPECTED = [
    "Jonas likes chess stated [2025-01-10T12:04, None)",
    "Jonas lives_in Milan stated [2025-03-01T12:02, None)",
    "Jonas lives_in Rome stated [2025-03-01T12:02, 2025-03-01T12:02)",
    "Jonas works_at Apple hearsay [2025-02-03T12:03, None)",
    "Jonas works_at Globex stated [2025-01-10T12:01, 2025-02-03T12:00)",
    "Jonas works_at Hooli stated [2025-02-03T12:01, None)",
    "Maya lives_in Berlin stated [2025-01-10T12:00, 2025-01-27T00:00)",
    "Maya lives_in London stated [2025-01-27T00:00, None)",
    "Maya works_at Hooli stated [2025-02-01T00:00, None)",
    "Maya works_at Initech stated [2025-01-10T12:03, 2025-02-01T00:00)",
    "Rex died Tom stated [2025-02-28T00:00, 2025-03-01T00:00)",
    "Tom allergic_to peanuts stated [2025-02-03T12:04, None)",
    "Tom has_pet Rex stated [2025-01-10T12:02, 2025-03-01T12:04)",
    "Tom lives_in Paris stated [2025-01-10T12:05, None)",
    "Tom works_at Acme stated [2025-01-01T00:00, 2025-03-01T12:07)",
    "Tom's sister lives_in Madrid stated [2025-03-01T12:01, None)",
]


class Reader(BaseChatModel):
    """Chat model that answers by the turns of a prompt, some of them late.

    It names a known fact that ends by its number, or by its words where the prompt doesn't show it.
    """

    delays: Any
    answered: Any

    @property
    def _llm_type(self) -> str:
        return "reader"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        prompt = str(messages[-1].content)
        turns = re.findall(r"<episode[^>]*>\n(.*?)\n</episode>", prompt)
        slow = 0.1 if turns[0] in SLOW else 0.0
        time.sleep(slow + self.delays.uniform(0.001, 0.01))
        self.answered.extend(turns)
        reply: dict[str, list[dict[str, Any]]] = {"entities": [], "facts": [], "ended": []}
        for number, turn in enumerate(turns, 1):
            facts, ends = SCRIPT[turn]
            for source, relation, target, *fields in facts:
                stated = {"episode": number, "source": source, "relation": relation, "target": target}
                reply["facts"].append(stated | dict(*fields))
            for source, relation, target, why in ends:
                shown = re.search(rf"^(\d+)\. {source} {relation} {target or '[^:]+'}:", prompt, re.MULTILINE)
                known = int(shown[1]) if shown else None
                ended = {"episode": number, "known": known, "source": source, "relation": relation, "target": target}
                reply["ended"].append({**ended, "why": why})
        return ChatResult(generations=[ChatGeneration(message=AIMessage(json.dumps(reply)))])


def groups(chat: list[Said], sizes: list[int]) -> Iterator[list[dict[str, str]]]:
    """Yield the turns of a chat in groups of these sizes."""
    left = [
        {"session_id": session, "occurred_at": f"{at}Z", "speaker": speaker, "text": text}
        for session, at, speaker, text in chat
    ]
    for size in sizes:
        if left:
            yield left[:size]
            left = left[size:]


def stored(memory: GraphMemory, sizes: list[int]) -> list[str]:
    """Return the facts of the chat as lines, after it came in groups of these sizes."""
    for group in groups(CHAT, sizes):
        memory.ingest(group)
    stats = memory.stats()
    assert (stats.pending_episodes, stats.failed_episodes) == (0, 0)
    facts = {f.id: f for e in memory.entities(limit=100) for f in memory.history(e.name)}.values()
    return sorted(
        f"{f.source} {f.relation} {f.target} {f.certainty} [{f.valid_from:%Y-%m-%dT%H:%M}, "
        f"{f.valid_to and f'{f.valid_to:%Y-%m-%dT%H:%M}'})"
        for f in facts
    )


@pytest.mark.skipif(not spacy_available(), reason="spaCy and an English model are not installed")
@pytest.mark.full(pace="2")
@pytest.mark.full(pace="5")
@pytest.mark.slow  # spaCy reads a chat twice
@pytest.mark.parametrize("pace", [pace for pace in PACES if pace != "live"])
def test_the_local_parser_stores_the_same_facts_at_every_pace(
    store_url: str, open_memory: OpenMemory, pace: str
) -> None:
    memory = open_memory(store_url, extractor="spacy", embeddings="none")
    live = stored(memory.in_scope(scope_of("live")), PACES["live"](len(CHAT)))
    assert len(live) >= 10
    assert stored(memory.in_scope(scope_of("other")), PACES[pace](len(CHAT))) == live


@pytest.mark.full(store_url="sqlite", pace="bulk")
@pytest.mark.full(store_url="memory", pace="random")
@pytest.mark.full(store_url="memory", turns=1)
@pytest.mark.full(pace="2")
@pytest.mark.full(pace="5")
@pytest.mark.full(store_url="sqlite", turns=1)
@pytest.mark.parametrize("turns", [1, 4])
@pytest.mark.parametrize("pace", [pace for pace in PACES if pace != "live"])
def test_a_model_that_says_the_same_of_a_turn_stores_the_same_facts_at_every_pace(
    store_url: str, open_memory: OpenMemory, pace: str, turns: int
) -> None:
    model = Reader(delays=random.Random(turns), answered=[])
    options: dict[str, Any] = {"extractor": "llm", "llm": model, "embeddings": "none", "extraction_turns": turns}
    memory = open_memory(store_url, extraction_concurrency=4, **options)
    live = stored(memory.in_scope(scope_of("live")), PACES["live"](len(CHAT)))
    assert live == EXPECTED
    for n in range(3):
        assert stored(memory.in_scope(scope_of(f"other {n}")), PACES[pace](len(CHAT))) == live
    assert sorted(model.answered) == sorted(4 * [text for _, _, _, text in CHAT])
