"""Words of the first person: who a question is about, what a turn tells of its speaker, and names replaced by "I"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

_SINGULAR = re.compile(r"(?<![\w-])i(?=[\s,;:?!'’)]|$)|\b(?:my|me|mine|myself)\b", re.IGNORECASE)
_PLURAL = re.compile(r"\b(?:we|our|ours|ourselves)\b|(?-i:\b[Uu]s\b)", re.IGNORECASE)
_TO_TELL = re.compile(r"(?:^|[.!?,:]|\bplease|\byou)\s*\b(?:give|let|remind|show|tell) (?:me|us)\b", re.IGNORECASE)
_OWN = re.compile(r"\b(?:[Ii]|[Mm](?:e|y|ine|yself)|[Ww]e|[Oo](?:ur|urs|urselves)|us)\b")
_YOUR = re.compile(r"\b(?:you|yours?|yourself)\b", re.IGNORECASE)
FIRST_PERSON = re.compile(r"\b(?:I|[Mm]y|[Mm]e|[Mm]ine|[Mm]yself)\b")
"""Words of a single person who speaks; "i" only as a capital letter."""


def first_person_of(question: str) -> Literal["singular", "plural"] | None:
    """Return whether a question has "I", "my" …, other than in "tell me", or else "we", "our" …, or neither."""
    told = _TO_TELL.sub(" ", question)
    return "singular" if _SINGULAR.search(told) else "plural" if _PLURAL.search(told) else None


def with_asker(question: str, asked_by: str | None) -> str:
    """Return a question in the first person with the name of who asks before it; any other question unchanged."""
    return f"{asked_by}: {question}" if asked_by and first_person_of(question) else question


def self_reference(text: str) -> float:
    """Return how much a turn tells of its speaker: 1 in the first person, 0 if it only says "you", 0.5 otherwise."""
    return 1.0 if _OWN.search(text) else 0.0 if _YOUR.search(text) else 0.5


def first_person(text: str, who: Sequence[str]) -> str:
    """Return a text with the names of speakers replaced by "I" and "my", as speakers refer to themselves."""
    for speaker in who:
        form = re.escape(speaker)
        text = re.sub(rf"\b{form}['’]s\b", "my", text, flags=re.IGNORECASE)
        text = re.sub(rf"\b{form}\b", "I", text, flags=re.IGNORECASE)
    return " ".join(text.split()).removeprefix("I: ")
