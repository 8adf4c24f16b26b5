"""Metadata keys of episodes that the library reads or writes; every other key is the caller's."""

from __future__ import annotations

from collections.abc import Mapping

TRUST = "trust"
"""The trust that a caller stated."""

INJECTION_FLAG = "has_injection_flags"
"""Field of an input, and key of its episode, that marks the text as untrusted."""

SKIPPED = "skipped"
"""The reason why an episode is excluded from extraction; set by the library only."""

NO_TEXT = "no_text"
"""True if a message has no text, so that its text lists the attachments and calls; set by the library only."""

UTC_OFFSET = "utc_offset"
"""The UTC offset of the original timestamp, such as "+0100", if it isn't UTC."""

UNDATED = "undated"
"""True if only the modification time of its file dates a text, which may be years older."""

SOURCE_PATH = "source_path"
"""The path of the file that an item was read from."""

ATTACHMENTS = "attachments"
"""The attachments in stored metadata: a JSON list of their fields."""

TOOL_CALLS = "tool_calls"
"""The tool calls of a message: a JSON list of their fields."""

TOOL_CALL_ID = "tool_call_id"
"""The id of the call that a tool result answers."""

TOOL_STATUS = "tool_status"
""""error" for the result of a call that failed."""


_MAIL = ("subject", "to", "file")


def is_mail(metadata: Mapping[str, object]) -> bool:
    """Return whether metadata are those of a mail read from a file: with a subject and receivers, which may be ""."""
    return all(key in metadata for key in _MAIL)
