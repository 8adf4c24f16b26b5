"""visible: which characters are removed from quoted text, in each surface that quotes."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

import pytest

from graphmem.adapters.mcp.results import fenced
from graphmem.models import Episode, Scope
from graphmem.search.context import render_episode
from graphmem.text.normalize import visible

AT = datetime(2026, 1, 5, tzinfo=UTC)
# Default_Ignorable_Code_Point of Unicode 16
IGNORABLE = (
    "AD 34F 61C 115F-1160 17B4-17B5 180B-180F 200B-200F 202A-202E 2060-206F 3164 FE00-FE0F FEFF FFA0 FFF0-FFF8 "
    "1BCA0-1BCA3 1D173-1D17A E0000-E0FFF"
)


def hidden() -> list[str]:
    """Return all characters that a reader doesn't see, and that the quoted text of a memory must not have."""
    found = [chr(n) for n in range(0x20000) if unicodedata.category(chr(n)) in ("Cc", "Zl", "Zp")]
    for span in IGNORABLE.split():
        begin, _, end = span.partition("-")
        found += map(chr, range(int(begin, 16), int(end or begin, 16) + 1))
    return [*found, "\ufff9", "\ufffa", "\ufffb"]


def test_no_hidden_character_stays() -> None:
    for each in hidden():
        assert visible(f"a{each}b") == ("ab" if each not in "\t\n" else f"a{each}b"), ascii(each)


@pytest.mark.parametrize(
    "text",
    [
        "\u2764\ufe0f \u2600\ufe0e \xa9\ufe0f",  # a red heart, a black sun
        "1\ufe0f\u20e3 #\ufe0f\u20e3",  # keys
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",  # a family
        "\U0001f3f3\ufe0f\u200d\U0001f308",  # a flag
        "\U0001f469\U0001f3fd\u200d\u2764\ufe0f\u200d\U0001f48b\u200d\U0001f468",  # a kiss
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian: I want
        "\u0915\u094d\u200d\u0937",  # Devanagari
        "Line one\n\tline two",
    ],
    ids=ascii,
)
def test_what_is_written_with_such_characters_stays(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(
    "text", ["a\u200d\u2764", "\u2764\ufe0f\ufe0f", "\u2764\u200dx", "7\ufe0f", "x\ufe0f", "\u0645\u200c\u200c"]
)
def test_they_stay_nowhere_else(text: str) -> None:
    assert len(visible(text)) == len(text) - 1


def test_no_surface_quotes_them() -> None:
    every = hidden()
    for begin in range(0, len(every), 200):
        some = every[begin : begin + 200]
        said = "Rex" + "".join(some)
        episode = Episode(scope=Scope("maya"), text=said, occurred_at=AT, source="message")
        episode = episode.changed(speaker=f"Ma{some[0]}ya")  # with NUL, as older versions stored it
        for text in (render_episode(episode), fenced(said)):
            assert "Rex" in text
            assert not set(every) - {"\n"} & set(text)
