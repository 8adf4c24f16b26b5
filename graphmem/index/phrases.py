"""Extraction of names and sentences for the index, by spaCy if installed, otherwise by capitals and punctuation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Protocol

from graphmem.text.english import batch_size, english_pipeline, parsing, pieces, spacy_available
from graphmem.text.names import plain

if TYPE_CHECKING:
    from spacy.tokens import Doc

_NUMBERS = frozenset({"CARDINAL", "ORDINAL", "PERCENT", "QUANTITY"})
_LONGEST_NAME = 100
_LONGEST_TEXT = 100_000  # characters; spaCy refuses a million
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+[\"')\]]*|\n|$)")
_CAPITALS = re.compile(
    r"(?<=[\w,;:] )[A-Z][\w'’-]*(?: (?:of |the |de |von )?[A-Z][\w'’-]*)*|"
    r"(?<!\w)[A-Z][\w'’-]{0,99}+(?: [A-Z][\w'’-]*)+"
)


@dataclass(frozen=True, slots=True)
class Phrases:
    """The phrases of a text: its normalized names, and the ranges of its sentences."""

    names: tuple[str, ...]
    sentences: tuple[tuple[int, int], ...]


class PhraseFinder(Protocol):
    """A finder of names and sentences."""

    def find(self, texts: Sequence[str]) -> list[Phrases]:
        """Return names and sentences of each text."""
        ...


class PlainPhrases:
    """Finder by regular expressions: runs of capitalized words, and sentences by punctuation."""

    def find(self, texts: Sequence[str]) -> list[Phrases]:
        """Return names and sentences of each text."""
        return [
            Phrases(
                _distinct(found[0] for found in _CAPITALS.finditer(text)),
                tuple(found.span() for found in _SENTENCE.finditer(text) if found[0].strip()),
            )
            for text in texts
        ]


class SpacyPhrases:
    """Finder by spaCy: named entities except numbers, noun chunks without stop words, and parsed sentences."""

    def find(self, texts: Sequence[str]) -> list[Phrases]:
        """Return names and sentences of each text."""
        cut = [list(pieces(text[:_LONGEST_TEXT])) for text in texts]
        every = [piece for text in cut for piece in text]
        with parsing:
            docs = english_pipeline().pipe(every, batch_size=min(64, batch_size(every)), disable=["lemmatizer"])
            found = map(_of_doc, docs)
            return [_joined([next(found) for _ in text], text) for text in cut]


def phrase_finder() -> PhraseFinder:
    """Return the best installed phrase finder."""
    return SpacyPhrases() if spacy_available() else PlainPhrases()


def _of_doc(doc: Doc) -> Phrases:
    entities = [entity.text for entity in doc.ents if entity.label_ not in _NUMBERS]
    chunks = [" ".join(token.text for token in chunk if not token.is_stop) for chunk in doc.noun_chunks]
    sentences = tuple((sentence.start_char, sentence.end_char) for sentence in doc.sents if sentence.text.strip())
    return Phrases(_distinct([*entities, *chunks]), sentences)


def _joined(parts: Sequence[Phrases], texts: Sequence[str]) -> Phrases:
    """Return the phrases of a text from those of its pieces."""
    if len(parts) == 1:
        return parts[0]
    begins = accumulate((len(text) for text in texts), initial=0)
    places = [(begin + first, begin + last) for part, begin in zip(parts, begins) for first, last in part.sentences]  # noqa: B905
    return Phrases(_distinct(chain.from_iterable(part.names for part in parts)), tuple(places))


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    found = dict.fromkeys(plain(name) for name in names)
    return tuple(sorted(name for name in found if name and len(name) <= _LONGEST_NAME))
