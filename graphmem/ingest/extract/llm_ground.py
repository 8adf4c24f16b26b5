"""Grounding: which names an episode really has, so that what a small model invents is left out. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from graphmem.protocols import ExtractionRequest
from graphmem.text.words import unaccented

_APOSTROPHE = re.compile("['’‘`´]")
_POSSESSIVE = re.compile("(?<=\\w)['’‘`´]s\\b")
_WORD = re.compile(r"[^\W_]+")
# scripts that are written without spaces between words, or with particles joined on
_JOINED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_FILLERS = frozenset(
    "a an and at by de del der des di du el for from his her in la las le les los my of on or our the their to und "
    "van von with your".split()
)


def words(text: str) -> list[str]:
    """Return the words of a text without case, diacritics, possessives and plural endings."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", unaccented(text))
    text = _APOSTROPHE.sub("", _POSSESSIVE.sub("", text.lower()))
    return [_singular(word) for word in _WORD.findall(text)]


@lru_cache(maxsize=8192)
def _singular(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1]


class Grounds:
    """The words that a name may come from.

    Parameters
    ----------
    texts
        The episode, its context, its title, and the names of those who speak.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        texts = list(texts)
        sequences = [words(text) for text in texts]
        self._texts = texts
        self._words = frozenset(word for sequence in sequences for word in sequence)
        self._phrases = "\n".join(f" {' '.join(sequence)} " for sequence in sequences)
        self._joined = "\n".join("".join(sequence) for sequence in sequences)

    @classmethod
    def of(cls, request: ExtractionRequest, speakers: Iterable[str]) -> Grounds:
        """Collect what a request says."""
        episode = request.episode
        return cls([episode.text, episode.title or "", *(turn.text for turn in request.context), *speakers])

    def has(self, name: str) -> bool:
        """Tell whether a name is in the texts: whole, or every word of it that isn't a filler."""
        parts = words(name)
        if not parts:  # a symbol, such as an emoji
            return bool(name.strip()) and any(name.strip() in text for text in self._texts)
        if _JOINED.search(name) and "".join(parts) in self._joined:
            return True
        content = [part for part in parts if part not in _FILLERS]
        if content:
            return all(part in self._words for part in content)
        return f" {' '.join(parts)} " in self._phrases
