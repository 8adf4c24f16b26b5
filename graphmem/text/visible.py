"""Removal of control and invisible characters from text that a prompt, a client or a terminal shows."""

from __future__ import annotations

import re

# controls except tab and newline, separators of lines, Default_Ignorable_Code_Point of Unicode, and annotations
_ALL = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_EMOJI = "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
# Arabic, Indic and similar scripts
_JOINED = "\u0620-\u109f\u1780-\u17b3\u17b6-\u180a\u1820-\u18af\ufb50-\ufdff\ufe70-\ufefc"

INVISIBLE = re.compile(
    f"[{_ALL}]"
    f"(?<![{_JOINED}][\u200c\u200d])"  # letters of these scripts are joined or kept apart by them
    f"(?<![{_EMOJI}][\ufe0e\ufe0f])"  # shown as text, or in color
    "(?!(?<=[#*0-9]\ufe0f)\u20e3)"  # a key
    f"(?!(?<=[{_EMOJI}\ufe0f]\u200d)[{_EMOJI}])"  # emoji joined to one
)
"""Control and invisible characters, except tabs, newlines, and those that emoji and scripts are written with."""


def visible(text: str) -> str:
    """Return a text without control and invisible characters, which can hide instructions from a reader."""
    return INVISIBLE.sub("", text)
