"""Trust in the sources of a memory (docs/how-to/privacy.md). Pure functions.

`trusted` is what the user and the assistant say, `external` what documents, mails and tools say, `untrusted` what the
caller or the detector of prompt injections flagged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from graphmem.models import Episode, Scalar
from graphmem.models.metadata import INJECTION_FLAG, SKIPPED, TRUST, is_mail
from graphmem.text.injection import Origin, looks_like_injection

Trust = Literal["untrusted", "external", "trusted"]
"""Trust of a source, in ascending order."""

LEVELS: tuple[Trust, ...] = ("untrusted", "external", "trusted")

_BY_NAME: dict[str, Trust] = {level: level for level in LEVELS}

RoleKind = Literal["user", "assistant", "tool", "system"]

_ROLES: dict[str, RoleKind] = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "model", "bot", "chatbot"), "assistant"),
    **dict.fromkeys(("tool", "function", "tool_result", "tool_output", "function_call_output", "ipython"), "tool"),
    **dict.fromkeys(("system", "developer"), "system"),
}
_ASSISTANT_NAMES = frozenset({"assistant", "ai"})
USER, ASSISTANT = "User", "Assistant"
"""Names of speakers that only have a role."""


def role_kind(role: str | None) -> RoleKind | None:
    """Return the kind of a role as a provider or framework names it, in any case; None if there is none, or another."""
    return _ROLES.get((role or "").strip().lower())


def speaker_of(episode: Episode) -> str | None:
    """Return who says an episode: its speaker, else User or Assistant by the role of a message, else None."""
    if episode.speaker is not None or episode.source != "message" or not episode.role:
        return episode.speaker
    return USER if role_kind(episode.role) == "user" else ASSISTANT


def is_assistant(episode: Episode) -> bool:
    """Return whether an assistant says an episode: by its role, or by that as its name."""
    return role_kind(episode.role) == "assistant" or (speaker_of(episode) or "").strip().lower() in _ASSISTANT_NAMES


def trust_of(episode: Episode) -> Trust:
    """Return the trust of an episode: what was flagged is untrusted; then what the caller stated; then by its kind."""
    metadata = episode.metadata
    if metadata.get(INJECTION_FLAG) or metadata.get(SKIPPED) == "injection":
        return "untrusted"
    return stated_trust(episode) or ("external" if is_external(episode) else "trusted")


def stated_trust(episode: Episode) -> Trust | None:
    """Return the trust that a caller stated for an episode; None if there is none."""
    return _BY_NAME.get(str(episode.metadata.get(TRUST)))


def without_raised_trust(metadata: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the metadata of a text without a stated trust of trusted, which only a caller states, by the field."""
    return {key: value for key, value in metadata.items() if (key, value) != (TRUST, "trusted")}


def is_external(episode: Episode) -> bool:
    """Return whether an episode is a document, a mail read from a file, or the output of a tool."""
    return episode.source == "document" or role_kind(episode.role) == "tool" or is_mail(episode.metadata)


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
    elif role_kind(episode.role) == "assistant":  # a name that a user may choose says nothing
        origin = "assistant"
    return looks_like_injection(episode.searchable_text, origin)
