"""What retracts the speaker's own words, and what only sounds like it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from graphmem.ingest.extract.spacy import SpacyExtractor, spacy_available
from graphmem.models import Episode, Scope
from graphmem.protocols import Extraction, ExtractionRequest

pytestmark = pytest.mark.skipif(not spacy_available(), reason="spaCy and an English model are not installed")

NOON = datetime(2025, 3, 10, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def extractor() -> SpacyExtractor:
    return SpacyExtractor()


def request(text: str, *before: tuple[str, str] | str, later: timedelta = timedelta(minutes=1)) -> ExtractionRequest:
    """Return the request for Maya's words after other turns, which are hers unless a speaker is named."""
    context: list[Episode] = []
    for turn in before:
        speaker, said = ("Maya", turn) if isinstance(turn, str) else turn
        context.append(Episode(scope=Scope(), text=said, speaker=speaker, occurred_at=NOON))
    episode = Episode(scope=Scope(), text=text, speaker="Maya", occurred_at=NOON + later)
    return ExtractionRequest(episode, tuple(context))


def read(extractor: SpacyExtractor, asked: ExtractionRequest) -> tuple[set[str], set[str]]:
    """Return the facts of a turn and those that it retracts, as "relation target"."""
    (found,) = extractor.extract([asked])
    assert isinstance(found, Extraction), found
    facts = {f"{e.relation} {e.target}" for e in found.edges if not e.ended}
    return facts, {f"{e.relation} {e.target}" for e in found.endings if e.why == "corrected"}


SMALL_TALK = [
    "Oh I see.",
    "Sorry I forgot.",
    "No I don't.",
    "Wait Tom called",
    "Oh Anna is coming",
    "No Problem",
    "Oh, Happy Birthday!",
    "Sorry, Anna!",
    "Actually I love it",
    "Oh Really",
    "Wait What",
    "Actually I agree",
    "Oh sorry Tom",
    "* Milk",
    "*Note",
    "No Way!",
    "Wait, Ross!",
    "I mean WOW",
    "I meant Tuesday.",
]


@pytest.mark.parametrize("said", ["I live in Ghent.", "I work at Siemens.", "My brother Tom lives in Rome."])
@pytest.mark.parametrize("text", SMALL_TALK)
def test_small_talk_retracts_nothing(extractor: SpacyExtractor, said: str, text: str) -> None:
    assert read(extractor, request(text, said))[1] == set()


@pytest.mark.parametrize("said", ["I live in Ghent.", "I work at Siemens."])
def test_short_messages_of_real_conversations_retract_nothing(
    extractor: SpacyExtractor, shared_data: Path, said: str
) -> None:
    turns = (shared_data / "realtalk_dev_turns.jsonl").read_text("utf-8").splitlines()
    texts = {json.loads(turn)["text"] for turn in turns}
    short = sorted(text for text in texts if 0 < len(text.split()) <= 5)
    assert len(short) > 100
    found = extractor.extract([request(text, said) for text in short])
    ended = [[e for e in f.endings if not e.presumed] if isinstance(f, Extraction) else f for f in found]
    assert [text for text, endings in zip(short, ended, strict=True) if endings] == []


@pytest.mark.parametrize(
    ("before", "text", "right", "wrong"),
    [
        ("I live in Ghent.", "Sorry, I meant Bruges.", "lives_in Bruges", "lives_in Ghent"),
        ("I live in Ghent.", "Oh sorry, I meant Bruges!", "lives_in Bruges", "lives_in Ghent"),
        ("I live in Ghent.", "Sorry, Bruges.", "lives_in Bruges", "lives_in Ghent"),
        ("I live in Ghent.", "*Bruges", "lives_in Bruges", "lives_in Ghent"),
        ("I live in Ghent.", "Bruges, not Ghent.", "lives_in Bruges", "lives_in Ghent"),
        ("I live in Ghent.", "No, that's wrong, I live in Bruges.", "lives_in Bruges", "lives_in Ghent"),
        ("I live in Ghent.", "Actually, I live in Bruges, not Ghent.", "lives_in Bruges", "lives_in Ghent"),
        ("I work at Initech.", "No wait, I work at Globex. Sorry.", "works_at Globex", "works_at Initech"),
        ("I work at Initech.", "Actually I work at Globex, not Initech.", "works_at Globex", "works_at Initech"),
        ("I work at Initech.", "Sorry, I meant Globex.", "works_at Globex", "works_at Initech"),
        ("I met Anna.", "Sorry, I meant Lena.", "met Lena", "met Anna"),
        ("I live in Ghent and work at Siemens.", "Sorry, I meant Bruges.", "lives_in Bruges", "lives_in Ghent"),
    ],
)
def test_a_correction_replaces_the_name_of_its_kind(
    extractor: SpacyExtractor, before: str, text: str, right: str, wrong: str
) -> None:
    assert read(extractor, request(text, before)) == ({right}, {wrong})


@pytest.mark.parametrize("text", ["I live in Ghent, sorry, I meant Bruges.", "I live in Ghent. No wait, Bruges."])
def test_a_correction_in_the_same_turn_leaves_the_right_fact_alone(extractor: SpacyExtractor, text: str) -> None:
    assert read(extractor, request(text)) == ({"lives_in Bruges"}, {"lives_in Ghent"})


@pytest.mark.parametrize(
    ("before", "text"),
    [
        (["I live in Ghent.", "And I work at Siemens."], "Sorry, I meant Bruges."),
        (["I have two cats, Oscar and Bailey."], "Sorry, I meant Max."),
        (["I live in Ghent.", ("Tom", "Nice place!")], "No, Bruges!"),
        (["I live in Ghent."], "Actually I moved to Bruges."),
    ],
)
def test_a_correction_that_may_mean_something_else_retracts_nothing(
    extractor: SpacyExtractor, before: list[tuple[str, str] | str], text: str
) -> None:
    assert read(extractor, request(text, *before))[1] == set()


def test_an_explicit_correction_reaches_over_the_turn_of_another(extractor: SpacyExtractor) -> None:
    asked = request("Sorry, I meant Bruges.", "I live in Ghent.", ("Tom", "Nice place!"))
    assert read(extractor, asked) == ({"lives_in Bruges"}, {"lives_in Ghent"})


@pytest.mark.parametrize("reply", [[], [("Tom", "Nice place!")]], ids=["next turn", "after a reply"])
@pytest.mark.parametrize(
    ("said", "text", "fact"),
    [
        ("I moved to Ghent in April 2025.", "That's wrong, I moved to Ghent in May 2025.", "lives_in Ghent"),
        ("I've worked at Siemens since 2019.", "Sorry, I've worked at Siemens since March 2018.", "works_at Siemens"),
    ],
)
def test_another_beginning_of_a_fact_replaces_the_one_before(
    extractor: SpacyExtractor, said: str, text: str, fact: str, reply: list[tuple[str, str]]
) -> None:
    assert read(extractor, request(text, said, *reply)) == ({fact}, {fact})


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("I moved to Ghent in April 2025.", "Actually, I moved to Ghent in April 2025."),
        ("I moved to Ghent in April 2019.", "Actually, I moved back to Ghent in May 2025."),
        ("I moved to Ghent in April 2025.", "Actually, I live in Ghent."),
        ("I moved to Ghent in April 2025.", "Oh, I moved to Ghent in May 2025."),
        ("I visited Ghent in April 2025.", "Actually, I visited Ghent in May 2025."),
    ],
)
def test_what_may_hold_beside_it_retracts_no_beginning(extractor: SpacyExtractor, said: str, text: str) -> None:
    assert read(extractor, request(text, said))[1] == set()


@pytest.mark.parametrize("text", ["Sorry, I meant Bruges.", "Actually, I live in Bruges."])
def test_what_was_said_long_ago_is_not_corrected(extractor: SpacyExtractor, text: str) -> None:
    assert read(extractor, request(text, "I live in Ghent.", later=timedelta(days=2)))[1] == set()


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("I said I live in Rome. I actually live in Milan.", {"lives_in Milan"}),
        ("I said that I live in Rome, but I actually live in Milan.", {"lives_in Milan"}),
        ("I told you I live in Rome. I live in Milan, actually.", {"lives_in Milan"}),
        ("I said I work at Acme. I actually work at Globex.", {"works_at Globex"}),
        ("I said I moved to Rome last week. I actually moved to Milan.", {"lives_in Milan"}),
        ("Sorry, I said I work in engineering. I'm actually a product manager", {"is_a product manager"}),
        ("I said my sister is Anna. My sister is actually Lena.", {"has_sister Lena"}),
        ("I thought Tom lives in Rome. Tom lives in Milan.", {"lives_in Milan"}),
        ("I said my birthday is on 3 May. My birthday is on 4 May.", {"has_birthday 4 May"}),
    ],
)
def test_what_the_speaker_once_said_is_not_said_again(extractor: SpacyExtractor, text: str, facts: set[str]) -> None:
    assert read(extractor, request(text))[0] == facts


@pytest.mark.parametrize("text", ["I said I live in Rome.", "I said I quit Acme."])
def test_what_the_speaker_once_said_alone_is_no_fact(extractor: SpacyExtractor, text: str) -> None:
    assert read(extractor, request(text)) == (set(), set())


@pytest.mark.parametrize(
    "text",
    ["As I said, I live in Rome.", "I live in Rome, as I said.", "I think I live in Rome.", "I know I live in Rome."],
)
def test_what_is_said_again_is_a_fact(extractor: SpacyExtractor, text: str) -> None:
    assert read(extractor, request(text))[0] == {"lives_in Rome"}


def test_an_age_told_before_is_kept_if_it_is_repeated(extractor: SpacyExtractor) -> None:
    assert read(extractor, request("As I said, I'm 29 years old."))[0] == {"has_age 29 years"}
