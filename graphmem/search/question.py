"""Parsing of questions: speakers, names and months (docs/concepts/search.md). Pure functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from graphmem.search.names import Names, names_in
from graphmem.text.names import plain

_NICKNAME = 3  # length of a name prefix that matches a speaker: "Mel"
_MONTHS = tuple("january february march april may june july august september october november december".split())
_MAY = re.compile(r"\b(?:in|on|of|during|by|until|since|\d)\s+May\b|\bMay,?\s+\d")
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A question parsed with the speakers and names of a memory.

    Attributes
    ----------
    text
        The original text.
    first_person
        The text with the named speakers replaced by "I", as speakers refer to themselves.
    speakers
        Numbers of the speakers in the question.
    names
        Names of the memory in the question.
    seeds
        The names written as proper names.
    """

    text: str
    first_person: str
    speakers: tuple[int, ...]
    names: tuple[str, ...]
    seeds: tuple[str, ...]


def parse_question(text: str, speakers: Sequence[str], names: Names) -> ParsedQuestion:
    """Parse a question with the speakers and names of a memory."""
    asked = tuple(k for k, speaker in enumerate(speakers) if _is_asked(speaker, text))
    who = [speakers[k] for k in asked]
    found, seeds = _named(text, who, names)
    return ParsedQuestion(text, first_person(text, who), asked, tuple(found), tuple(seeds))


def months(text: str) -> int:
    """Return a bit mask of the months in a text, bit 0 for January; "may" counts only in a date-like context."""
    words = {word.lower() for word in _WORD.findall(text)}
    return sum(1 << i for i, m in enumerate(_MONTHS) if m in words and (m != "may" or _MAY.search(text)))


def _is_asked(speaker: str, text: str) -> bool:
    """Return whether a question names a speaker, but not as part of a longer capitalized name ("John Adams")."""
    nickname = speaker[:_NICKNAME]
    return _stands_alone(speaker, text, re.IGNORECASE) or (
        len(speaker) > _NICKNAME + 1 and _stands_alone(nickname, text, 0)
    )


def _stands_alone(form: str, text: str, flags: int) -> bool:
    return any(
        not re.match(r"\s+[A-Z]", text[found.end() :]) and not re.search(r"\s[A-Z][\w.]*\s$", text[: found.start()])
        for found in re.finditer(rf"\b{re.escape(form)}\b", text, flags)
    )


def first_person(text: str, who: Sequence[str]) -> str:
    """Return a text with the names of speakers replaced by "I" and "my", as speakers refer to themselves."""
    for speaker in who:
        form = re.escape(speaker)
        text = re.sub(rf"\b{form}['’]s\b", "my", text, flags=re.IGNORECASE)
        text = re.sub(rf"\b{form}\b", "I", text, flags=re.IGNORECASE)
    return " ".join(text.split())


def _named(text: str, who: Sequence[str], names: Names) -> tuple[list[str], list[str]]:
    """Return the names in a question, and those that are proper names.

    Proper names are capitalized; in a question without capitals, the usage of the memory decides.
    """
    spoken = {plain(speaker) for speaker in who}
    found = [name for name in names_in(text, names.known, spoken) if name not in spoken]
    lower = text.lower() == text
    body = text[1:]  # the first letter of a question is always capitalized

    def is_capital(word: str) -> bool:
        if lower:
            return names.is_proper(word)
        return re.search(rf"\b({re.escape(word.capitalize())}|{re.escape(word.upper())})\b", body) is not None

    return found, [name for name in found if any(is_capital(word) for word in name.split())]
