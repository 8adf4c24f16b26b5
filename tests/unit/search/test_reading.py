"""Which texts are parsed for names and sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from graphmem.embed import Embedder, TokenVectors
from graphmem.index.encoder import EpisodeEncoder
from graphmem.index.stored_vectors import detail_of
from graphmem.models import Episode, Scope
from graphmem.text.names import Phrases, PlainPhrases, phrases_of_list

HOME = Scope("home")


class Parser:
    """A finder that keeps what it was given, and finds its first letter."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def find(self, texts: Sequence[str]) -> list[Phrases]:
        """Return one name a text."""
        self.given += texts
        return [Phrases((text[0],), ((0, len(text)),)) for text in texts]


def test_what_somebody_says_is_not_parsed() -> None:
    parser = Parser()
    episodes = [
        Episode(id="1", scope=HOME, source="document", text="alpha is written"),
        Episode(id="2", scope=HOME, text="we met in Porto", speaker="Ines"),
        Episode(id="3", scope=HOME, text="beta is a note"),
        Episode(id="4", scope=HOME, text="and then we saw Braga", role="user"),
        Episode(id="5", scope=HOME, source="document", text="gamma", speaker="Ines"),
    ]
    entries = EpisodeEncoder(None, parser).episodes([(episode, None) for episode in episodes])
    assert parser.given == ["alpha is written", "beta is a note", "gamma"]
    assert [detail_of(entry)["names"] for entry in entries] == [["a"], ["porto"], ["b"], ["braga"], ["g"]]


def test_lists_of_facts_are_not_parsed() -> None:
    parser = Parser()
    text = "maya works at Globex Corp. Ltd\n\nmaya walks with her dog Bruno. He is old"
    facts = Episode(id="1", scope=HOME, source="triple", text=text)
    [entry] = EpisodeEncoder(None, parser).episodes([(facts, None)], {"1": ["maya", "Globex Corp. Ltd"]})
    assert parser.given == []
    assert detail_of(entry)["names"] == ["bruno", "globex corp", "globex corp ltd", "maya"]


def test_each_fact_of_a_list_is_a_sentence() -> None:
    found = phrases_of_list("Dr. Who lives in St. Ives\n \nSt. Ives is a town", ())
    assert found.sentences == ((0, 25), (28, 46))


class Model:
    """An embedding model that keeps what it was given; each word is a token."""

    model_name, dimension = "words", 2

    def __init__(self) -> None:
        self.given: list[str] = []

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the same vector for all words."""
        self.given += texts
        return [self._read(list(re.finditer(r"\w+", text))) for text in texts]

    def _read(self, words: Sequence[re.Match[str]]) -> TokenVectors:
        vectors = np.tile(np.array([1, 0], np.float32), (len(words), 1))
        offsets = np.array([word.span() for word in words], np.int64).reshape(-1, 2)
        return TokenVectors(tuple(word[0] for word in words), vectors, offsets, np.array([1, 0], np.float32))


def read_of(text: str, **fields: Any) -> tuple[list[str], list[str]]:
    """Return the distinct words of a text that the model is given, and those that the index keeps."""
    model = Model()
    episode = Episode(id="1", scope=HOME, text=text, **fields)
    [entry] = EpisodeEncoder(cast("Embedder", model), PlainPhrases()).episodes([(episode, None)])
    return sorted(set(re.findall(r"w\d+", " ".join(model.given)))), detail_of(entry)["pieces"]


SENTENCES = [" ".join(f"w{i}" for _ in range(10)) + "." for i in range(50)]


def test_of_a_long_turn_the_beginning_and_the_end_are_read() -> None:
    given, kept = read_of(" ".join(SENTENCES), role="assistant")
    assert given == kept == sorted(f"w{i}" for i in [*range(15), *range(35, 50)])


def test_a_turn_of_two_passes_is_read_in_full() -> None:
    assert read_of(" ".join(SENTENCES[:30]), role="assistant")[0] == sorted(f"w{i}" for i in range(30))


def test_a_long_document_is_read_in_full() -> None:
    assert read_of(" ".join(SENTENCES), source="document")[0] == sorted(f"w{i}" for i in range(50))


def test_a_turn_without_sentences_is_read_in_one_pass() -> None:
    given, _ = read_of(" ".join(f"w{i}" for i in range(500)), role="user")
    assert len(given) == 500
