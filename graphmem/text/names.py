"""Names in texts: search for known ones, tolerant of spelling variants, and extraction of others with the sentences.

Names and sentences are extracted by spaCy if it is installed, otherwise by capitals and punctuation.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Protocol

from graphmem.text.english import batch_size, english_pipeline, parsing, pieces, spacy_available
from graphmem.text.normalize import clean

if TYPE_CHECKING:
    from spacy.tokens import Doc

_SHORTEST = 3  # minimum letters of a name matched in any letter case
_INFLECTED = 4  # minimum letters of a name that may have an ending
_BETWEEN = r"[\s_.\-]{1,3}"
_BEFORE, _AFTER = r"(?<![^\W_])", r"(?![^\W_])"
# scripts without spaces between words or with joined endings: Thai to Khmer, Hangul, kana, Han
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]"
)
_NO_LETTERS = re.compile(r"[^\w ]|_")
_BRACKETS = re.compile(r" ?\([^)\n]{0,300}\)")
_LONGEST_TITLE = 300
_NUMBERS = frozenset({"CARDINAL", "ORDINAL", "PERCENT", "QUANTITY"})
_LONGEST_NAME = 100
_LONGEST_TEXT = 100_000  # characters; spaCy refuses a million
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+[\"')\]]*|\n|$)")
_LINE = re.compile(r"[^\n]+")
_CAPITALS = re.compile(
    r"(?<=[\w,;:] )[A-Z][\w'’-]*(?: (?:of |the |de |von )?[A-Z][\w'’-]*)*|"
    r"(?<!\w)[A-Z][\w'’-]{0,99}+(?: [A-Z][\w'’-]*)+"
)


def folded(text: str) -> str:
    """Return a text in one letter case, without accents and invisible characters."""
    if not text.isascii():
        text = clean(text, 4 * len(text.encode()))
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return text.casefold()


class NameFinder:
    """Finder of names as whole words, ignoring letter case and accents.

    A name also matches with a possessive or plural ending ("Maya's", "Mayas"), and with an underscore, hyphen or dot
    instead of a space. A name of fewer than three letters matches only in its exact form, since "it" is not "IT". In
    scripts without spaces between words, such as Chinese, a name matches anywhere in the text.

    Parameters
    ----------
    names
        The names, in any form.
    longer
        Names of others, such as "Alex Stone" beside "Alex": what is part of one of these isn't found.
    """

    def __init__(self, names: Iterable[str], longer: Iterable[str] = ()) -> None:
        forms = {name for name in names if name.strip()}
        loose = {f for name in forms if len(f := folded(name).strip()) >= _SHORTEST or (len(f) > 1 and _is_unspaced(f))}
        short = {name.strip() for name in forms if folded(name).strip() not in loose}
        self._loose = _pattern(loose)
        self._exact = _pattern({name for name in short if len(name) > 1 and not name.islower()})
        others = {name.strip() for name in longer if name.strip()}
        self._longer = _pattern(map(folded, others))
        self._longer_exact = _pattern(others, re.IGNORECASE)

    def found_in(self, text: str | None) -> bool:
        """Return whether a text contains one of the names."""
        if not text:
            return False
        if self._loose is not None and _found(self._loose, folded(text), self._longer):
            return True
        return self._exact is not None and _found(self._exact, text, self._longer_exact)


def _found(names: re.Pattern[str], text: str, longer: re.Pattern[str] | None) -> bool:
    if names.search(text) is None:
        return False
    return longer is None or names.search(longer.sub("\n", text)) is not None


def _pattern(names: Iterable[str], flags: int = 0) -> re.Pattern[str] | None:
    forms = [_form(name) for name in sorted(names, key=lambda name: (-len(name), name))]
    return re.compile("|".join(forms), flags) if forms else None


def _form(name: str) -> str:
    words = _BETWEEN.join(re.escape(word) for word in re.split(r"\s+", name))
    if _is_unspaced(name):
        return words
    ending = r"(?:['’]?s|es)?" if len(name) >= _INFLECTED else ""
    return f"{_BEFORE}{words}{ending}{_AFTER}"


def _is_unspaced(name: str) -> bool:
    return _UNSPACED.search(name) is not None


def plain(text: str) -> str:
    """Return a text normalized for comparing names: lower case, letters and digits, single spaces."""
    return " ".join(_NO_LETTERS.sub(" ", text.lower()).split())


def bare_title(title: str) -> str:
    """Return a title as a normalized name: its first 300 characters without text in parentheses."""
    title = title[:_LONGEST_TITLE]
    return plain(_BRACKETS.sub("", title)) or plain(title)


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
        """Return names and sentences of each text; the model is loaded with the first text."""
        if not texts:
            return []
        cut = [list(pieces(text[:_LONGEST_TEXT])) for text in texts]
        every = [piece for text in cut for piece in text]
        with parsing():
            docs = english_pipeline().pipe(every, batch_size=min(64, batch_size(every)), disable=["lemmatizer"])
            found = map(_of_doc, docs)
            return [_joined([next(found) for _ in text], text) for text in cut]


def phrases_of_list(text: str, names: Iterable[str]) -> Phrases:
    """Return the phrases of a list of facts: the given names of its subjects and objects, and a sentence for each line.

    Names of others, in facts that are sentences of their own, are found as by `PlainPhrases`.
    """
    lines = tuple(found.span() for found in _LINE.finditer(text) if not found[0].isspace())
    return Phrases(_distinct([*names, *(found[0] for found in _CAPITALS.finditer(text))]), lines)


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
