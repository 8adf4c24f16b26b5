"""Names and sentences of a text, for recall: by spaCy where it is installed, else by capitals and full stops."""

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


def own_words(text: str) -> str:
    """Return how a turn is said, without the caption of what it shares."""
    return text.split(" [shares photo")[0]


@dataclass(frozen=True, slots=True)
class Phrases:
    """What stands in a text: its names in the form they are compared in, and where its sentences are."""

    names: tuple[str, ...]
    sentences: tuple[tuple[int, int], ...]


class PhraseFinder(Protocol):
    """Finds names and sentences."""

    def find(self, texts: Sequence[str]) -> list[Phrases]:
        """Return those of each text."""
        ...


class PlainPhrases:
    """Runs of capitalized words, and what ends with a full stop."""

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
    """Named entities but numbers, noun chunks without stop words, sentences by the parser."""

    def find(self, texts: Sequence[str]) -> list[Phrases]:
        """Return names and sentences of each text."""
        cut = [list(pieces(text[:_LONGEST_TEXT])) for text in texts]
        every = [piece for text in cut for piece in text]
        with parsing:
            docs = english_pipeline().pipe(every, batch_size=min(64, batch_size(every)), disable=["lemmatizer"])
            found = map(_of_doc, docs)
            return [_joined([next(found) for _ in text], text) for text in cut]


def phrase_finder() -> PhraseFinder:
    """Return the best one that is installed."""
    return SpacyPhrases() if spacy_available() else PlainPhrases()


def _of_doc(doc: Doc) -> Phrases:
    entities = [entity.text for entity in doc.ents if entity.label_ not in _NUMBERS]
    chunks = [" ".join(token.text for token in chunk if not token.is_stop) for chunk in doc.noun_chunks]
    sentences = tuple((sentence.start_char, sentence.end_char) for sentence in doc.sents if sentence.text.strip())
    return Phrases(_distinct([*entities, *chunks]), sentences)


def _joined(parts: Sequence[Phrases], texts: Sequence[str]) -> Phrases:
    """Return what stands in the pieces of a text as that of the whole."""
    if len(parts) == 1:
        return parts[0]
    begins = accumulate((len(text) for text in texts), initial=0)
    places = [(begin + first, begin + last) for part, begin in zip(parts, begins) for first, last in part.sentences]  # noqa: B905
    return Phrases(_distinct(chain.from_iterable(part.names for part in parts)), tuple(places))


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    found = dict.fromkeys(plain(name) for name in names)
    return tuple(sorted(name for name in found if name and len(name) <= _LONGEST_NAME))
