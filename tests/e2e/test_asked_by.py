"""Questions in the first person are about who asks them."""

from __future__ import annotations

import pytest
from conftest import OpenMemory

from graphmem import GraphMemory

FACTS = [
    ("Maya", "works_at", "Globex"),
    ("Tom", "works_at", "Initech"),
    ("Maya", "lives_in", "Ghent"),
    ("Tom", "lives_in", "Turin"),
]


@pytest.fixture
def memory(store_url: str, open_memory: OpenMemory) -> GraphMemory:
    memory = open_memory(store_url, embeddings="none")
    memory.add_facts(FACTS)
    memory.ingest(
        [
            {"speaker": "Maya", "text": "I adopted a parrot.", "session_id": "one"},
            {"speaker": "Tom", "text": "I adopted a turtle.", "session_id": "two"},
        ]
    )
    return memory


@pytest.mark.parametrize(
    ("question", "asked_by", "first"),
    [
        ("Where do I work?", "Maya", "Maya works at Globex"),
        ("Where do I work?", "Tom", "Tom works at Initech"),
        ("what's my home?", "Tom", "Tom"),
        ("Where does Tom work?", "Maya", "Tom works at Initech"),
    ],
)
def test_recall_answers_about_who_asks(memory: GraphMemory, question: str, asked_by: str, first: str) -> None:
    assert memory.recall(question, asked_by=asked_by).facts[0].fact.startswith(first)


def test_without_an_asker_nobody_is_meant(memory: GraphMemory) -> None:
    assert memory.recall("Where do I work?").facts == ()


@pytest.mark.parametrize(("asked_by", "pet"), [("Maya", "parrot"), ("Tom", "turtle")])
def test_search_and_context_prefer_the_words_of_who_asks(memory: GraphMemory, asked_by: str, pet: str) -> None:
    found = memory.search("Which animal did I adopt?", asked_by=asked_by)
    quotes = memory.context("Which animal did I adopt?", asked_by=asked_by).partition("## Episodes")[2]
    assert pet in found.found[0].episode.text
    assert min((quotes.find(word) % 10_000, word) for word in ("parrot", "turtle"))[1] == pet


@pytest.mark.parametrize(
    ("asked_by", "question"),
    [
        *((None, text) for text in ("Where do I work?", "MY HOME?", "Where did i, of all people, work?")),
        *(
            ("Lena", text)
            for text in ("Where do I work?", "MY HOME?", "Where did i, of all people, work?", "Our home?")
        ),
    ],
)
def test_nobody_answers_for_an_unknown_asker(memory: GraphMemory, asked_by: str | None, question: str) -> None:
    assert memory.recall(question, asked_by=asked_by).facts == ()
    assert "Known facts" not in memory.context(question, asked_by=asked_by)


TALK = [("Ines", "Staging runs at Hetzner."), ("Mo", "I asked for my staging invoices.")]


@pytest.mark.parametrize("asked_by", ["Tom O'Neil", "tom o'neil", "Tom", "tom"])
def test_a_speaker_may_be_named_by_a_first_name_in_any_case(open_memory: OpenMemory, asked_by: str) -> None:
    memory = open_memory("memory://", embeddings="none", extractor="none")
    told = [
        ("Maya Chen", "We chose Postgres."),
        ("Tom O'Neil", "I'm on call in May."),
        ("Maya Chen", "I'm on call now."),
    ]
    memory.ingest([{"speaker": who, "text": text, "session_id": "s"} for who, text in told])
    found = memory.search("When am I on call?", asked_by=asked_by)
    assert (found[0].episode.speaker, found.unknown_asker) == ("Tom O'Neil", False)
    assert memory.search("What did we choose?", asked_by=asked_by)[0].episode.speaker == "Maya Chen"


@pytest.mark.server
def test_we_are_all_who_speak(store_url: str, open_memory: OpenMemory) -> None:
    memory = open_memory(store_url, embeddings="none", extractor="none")
    memory.ingest([{"speaker": who, "text": text, "session_id": "team", "external_id": who} for who, text in TALK])
    memory.add_facts([{"subject": "staging", "relation": "runs_on", "object": "Hetzner", "source": "Ines"}])
    for asked_by in (None, "Mo"):
        question = "Where do we run our staging?"
        assert memory.recall(question, asked_by=asked_by)[0].target == "Hetzner"
        assert memory.search(question, asked_by=asked_by)[0].episode.speaker == "Ines"
    assert memory.search("Which invoices did I ask for?", asked_by="Mo")[0].episode.speaker == "Mo"


def test_an_unknown_asker_may_ask_about_others(memory: GraphMemory) -> None:
    assert memory.recall("Where does Tom work?", asked_by="Lena")[0].target == "Initech"
    assert memory.recall("Did Tom tell me where he works?", asked_by="Lena")[0].source == "Tom"


def test_facts_without_speakers_are_not_those_of_whoever_asks(open_memory: OpenMemory) -> None:
    memory = open_memory("memory://", embeddings="none")
    memory.add_facts(FACTS)
    assert memory.recall("Where do I live?", asked_by="Lena").facts == ()
    assert memory.recall("Where do I live?", asked_by="Tom")[0].target == "Turin"


@pytest.mark.server
@pytest.mark.parametrize("name", [None, "Dana"])
@pytest.mark.parametrize(
    ("question", "reply"),
    [("Where do I live?", None), ("Where do I live?", "Noted."), ("Where does the user live?", "Noted.")],
)
def test_the_only_person_who_speaks_is_who_asks(
    store_url: str, open_memory: OpenMemory, name: str | None, question: str, reply: str | None
) -> None:
    memory = open_memory(store_url, embeddings="none", extractor="none")
    told = [("Leeds was fun, Initech is not.", "works_at", "Initech"), ("I packed for Porto.", "lives_in", "Porto")]
    for n, (text, relation, target) in enumerate(told):
        memory.ingest([{"text": text, "role": "user", "speaker": name, "external_id": f"t{n}", "session_id": "s"}])
        memory.add_facts([{"subject": name or "User", "relation": relation, "object": target, "source": f"t{n}"}])
    if reply:
        memory.ingest([{"text": reply, "role": "assistant", "session_id": "s"}])
    found = memory.recall(question)
    assert [found.query, found[0].target] == [question, "Porto"]
    assert "Porto" in memory.context(question).splitlines()[2]
