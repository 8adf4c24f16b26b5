"""Properties of the texts of episodes: what is searched, standing instructions, and what facts add."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from graphmem.models import Episode
from graphmem.search.speakers import ASSISTANT, USER, side_of
from graphmem.text.first_person import self_reference

_INSTRUCTION = re.compile(
    r"\W{0,3}(?:(?:and|also|ok|please)\b\W{1,3}){0,3}"
    r"(?:(?:always|never) (?!(?:an?|the|been|glad|good|great|had|happy|heard|mind|said|seen|thought|tried|used)\b)\w"
    r"|from now on\b|going forward\b|in (?:the )?future,|whenever I\b|(?:every|each) time I\b|(?:when|if) I ask\b)",
    re.IGNORECASE,
)
_LONGEST_INSTRUCTION = 400  # characters

NOVELTY = 0.4
"""Minimum share of a fact's terms missing in an episode's text for the fact to be indexed with the episode."""


def adds_words(stated: Sequence[str], has: Callable[[str], bool]) -> bool:
    """Return whether at least `NOVELTY` of a fact's terms are missing in an episode's text."""
    return sum(not has(term) for term in stated) >= NOVELTY * len(stated)


def tells(episode: Episode) -> float:
    """Return how much an episode tells of its speaker, by `self_reference`; documents and assistants are neutral."""
    is_neutral = not episode.speaker or side_of(episode.role, episode.speaker) == ASSISTANT
    return 0.5 if is_neutral else self_reference(episode.text)


def is_instruction(episode: Episode) -> bool:
    """Return whether a user's turn is a standing instruction, such as "Always give dates in full"."""
    if side_of(episode.role, episode.speaker) != USER or len(episode.text) > _LONGEST_INSTRUCTION:
        return False
    return _INSTRUCTION.match(episode.text) is not None


def spoken(episode: Episode) -> str:
    """Return the searchable text of an episode prefixed with its speaker or title."""
    return f"{episode.speaker or episode.title or ''}: {episode.searchable_text}"


def talk_of(episode: Episode) -> str | None:
    """Return the session of a message; documents of a session don't follow each other."""
    return episode.session_id if episode.source == "message" else None
