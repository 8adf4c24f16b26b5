"""What a message hands over, pastes or quotes is no statement of its author."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from graphmem.ingest.extract.spacy import SpacyExtractor, spacy_available
from graphmem.ingest.extract.spacy.pasted import without_pasted
from graphmem.models import Episode, Scope
from graphmem.protocols import Extraction, ExtractionRequest

HANDED_OVER = [
    "Translate into French: I live in Madrid.",
    "Please translate this into Spanish. I live in Madrid.",
    "I live in Madrid. Translate this into French please.",
    "Proofread this: I work at Siemens and my wife Anna lives in Rome.",
    "Fix the grammar: I has two cat named Tom and Kit.",
    "Can you correct my English: I am work at Siemens.",
    "Rewrite more politely - I quit my job at Acme.",
    "Could you make this sound more professional?\n\nI manage the sales team.",
    "Summarize the following text:\n\nI moved to Berlin in 2020. I work at Siemens.",
    "Write a poem that starts with 'I am a sailor from Porto'",
    "Draft a reply to Anna: Hi, I'm Bob and I live in Oslo.",
    "Pretend you are a detective. I'm Sam and I live in London.",
    "Let's role-play: I'm a detective called Sam. I live in London.",
    "For example: I live in Paris and I work at Google.",
    "Say: I live in Rome.",
    "What should I answer to this?\n\nHi, I'm Bob from Acme. I live in Denver.",
    "I got an email, how should I reply?\n\nHello,\nI live in Spain and my brother is Luis.\nBest, Carlos",
    "Here's the email:\nI live in Spain and my birthday is on 3 May.",
    "Can you check this?\n```\nMy birthday is on 3 May.\n```",
    "> My birthday is on 3 May.",
    '"""\nI live in Madrid.\n"""',
    "“We live in Valencia.\nI work at Siemens.”",
    "My friend said 'I live in Paris and I'm a nurse.'",
    "Then she goes: I live in Miami.",
    "I'm bored, pretend you are a detective. I'm Sam and I live in London.",
    "Hey Claude, play the part of a detective. I'm Sam and I live in London.",
    "I want to role-play. I'm Sam and I live in London.",
    "I am stuck and need help, please translate this. I live in Madrid.",
    "I need to translate this letter. I live in Madrid.",
    "Translate the letter into French.\nI live in Madrid.",
    "They sent this email.\nI live in Madrid.",
    "This is what he wrote.\nI live in Madrid.",
    "Here comes what they sent, an email:\nI live in Madrid.",
]
OWN = [
    "Translate my CV; I work at Acme.",
    "Help me with my essay. I work at Acme.",
    "Can you check my CV? I work at Acme.",
    "Write this down: I work at Acme.",
    "Check this out: I work at Acme.",
    "Update: I work at Acme.",
    "Correct, I work at Acme.",
    "Act as a career coach. I work at Acme.",
    "Let's play chess. I work at Acme.",
    "Good morning!\nHi all, I work at Acme.",
    "I read 'I, Robot', and I work at Acme.",
    "'Cause my parents' house is small, I work at Acme.",
    "Here's how it goes wrong: I work at Acme.",
    "I live in Leeds and do part-time work. I work at Acme.",
    "I live in Leeds and play the part of Juliet in a musical. I work at Acme.",
    "I live in Leeds, play the part of Juliet in a musical. I work at Acme.",
    "I'd like to play the part of Juliet. I work at Acme.",
    "I need to pretend to like her. I work at Acme.",
    "Tomorrow I start role-playing games. I work at Acme.",
    "We start role-playing games. I work at Acme.",
    "Start role-playing games. I work at Acme.",
    "I need to rewrite my CV this weekend. I work at Acme.",
    "I need to rewrite my CV.\nI work at Acme.",
    "I write and translate these days. I work at Acme.",
    "I write and translate it. I work at Acme.",
    "I teach and review papers this term. I work at Acme.",
    "I teach and review this paper. I work at Acme.",
    "I sent my CV to them.\nI work at Acme.",
    "I got an email from HR.\nI work at Acme.",
    "Ida wrote a review this week.\nI work at Acme.",
]


@pytest.mark.parametrize("text", OWN)
def test_the_own_words_of_a_request_are_kept(text: str) -> None:
    assert "I work at Acme." in without_pasted(text)


@pytest.mark.skipif(not spacy_available(), reason="spaCy and an English model are not installed")
@pytest.mark.parametrize("text", HANDED_OVER)
def test_what_is_handed_over_gives_no_fact(extractor: SpacyExtractor, text: str) -> None:
    episode = Episode(scope=Scope(), text=text, speaker="User", occurred_at=datetime(2026, 3, 2, tzinfo=UTC))
    [found] = extractor.extract([ExtractionRequest(episode, addressee="Assistant")])
    assert isinstance(found, Extraction)
    assert [e for e in (*found.edges, *found.endings) if "User" in e.source] == []


@pytest.fixture(scope="module")
def extractor() -> SpacyExtractor:
    return SpacyExtractor()
