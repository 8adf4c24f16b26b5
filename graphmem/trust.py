"""Trust in the sources of a memory (docs/how-to/privacy.md). Pure functions.

`trusted` is what the user and the assistant say, `external` what documents and tools say, `untrusted` what the caller
or the detector of prompt injections flagged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from graphmem.models import Episode
from graphmem.text.injection import Origin, looks_like_injection

Trust = Literal["untrusted", "external", "trusted"]
"""Trust of a source, in ascending order."""

LEVELS: tuple[Trust, ...] = ("untrusted", "external", "trusted")

_BY_NAME: dict[str, Trust] = {level: level for level in LEVELS}

TRUST = "trust"
"""Metadata key of the trust that a caller stated."""

INJECTION_FLAG = "has_injection_flags"
"""Field of an input, and metadata key of its episode, that marks the text as untrusted."""

SKIPPED = "skipped"
"""Metadata key of an episode excluded from extraction; its value is the reason."""

TOOL_ROLES = frozenset({"tool", "function", "tool_result", "tool_output", "function_call_output", "ipython"})

USER_ROLES = frozenset({"user", "human"})
_ASSISTANT_ROLES = frozenset({"assistant", "ai"})
USER, ASSISTANT = "User", "Assistant"
"""Names of speakers that only have a role."""


def speaker_of(episode: Episode) -> str | None:
    """Return who says an episode: its speaker, else User or Assistant by the role of a message, else None."""
    if episode.speaker is not None or episode.source != "message" or not episode.role:
        return episode.speaker
    return USER if episode.role.strip().lower() in USER_ROLES else ASSISTANT


def is_assistant(episode: Episode) -> bool:
    """Return whether an assistant says an episode: by its role, or by that as its name."""
    said = {(name or "").strip().lower() for name in (episode.role, speaker_of(episode))}
    return not said.isdisjoint(_ASSISTANT_ROLES)


def trust_of(episode: Episode) -> Trust:
    """Return the trust of an episode: what was flagged is untrusted; then what the caller stated; then by its kind."""
    metadata = episode.metadata
    if metadata.get(INJECTION_FLAG) or metadata.get(SKIPPED) == "injection":
        return "untrusted"
    return stated_trust(episode) or ("external" if is_external(episode) else "trusted")


def stated_trust(episode: Episode) -> Trust | None:
    """Return the trust that a caller stated for an episode; None if there is none."""
    return _BY_NAME.get(str(episode.metadata.get(TRUST)))


def is_external(episode: Episode) -> bool:
    """Return whether an episode is a document or the output of a tool."""
    return episode.source == "document" or (episode.role or "").strip().lower() in TOOL_ROLES


def best_trust(levels: Iterable[Trust]) -> Trust:
    """Return the highest of some levels; trusted if there is none."""
    return LEVELS[max((LEVELS.index(level) for level in levels), default=-1)]


def lowest_trust(levels: Iterable[Trust]) -> Trust:
    """Return the lowest of some levels; untrusted if there is none."""
    return LEVELS[min((LEVELS.index(level) for level in levels), default=0)]


def is_trusted(trust: Trust, minimum: Trust) -> bool:
    """Return whether a trust reaches a minimum."""
    return LEVELS.index(trust) >= LEVELS.index(minimum)


def is_suspicious(episode: Episode) -> bool:
    """Return whether an episode looks like a prompt injection; one that the caller calls trusted never does."""
    stated = stated_trust(episode)
    if stated == "trusted":
        return False
    origin: Origin = "user"
    if stated == "external" or is_external(episode):
        origin = "external"
    elif (episode.role or "").strip().lower() in _ASSISTANT_ROLES:  # a name that a user may choose says nothing
        origin = "assistant"
    return looks_like_injection(episode.searchable_text, origin)
