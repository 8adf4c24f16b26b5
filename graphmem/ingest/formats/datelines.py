"""Date of a text in its first lines: "Last edited 4 March 2026", "Ann Lee, 3 May 2025"."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from graphmem.text.date_patterns import WEEKDAYS
from graphmem.text.dates import DateSpan, find_dates

HEAD_LINES = 12
"""Number of lines in which a text may have its date."""

_MOST_WORDS = 3  # of a part beside the name of who wrote a text: "Ann Lee, accounts, 3 May 2025"
_LONGEST = 300  # characters of such a line
_LABELS = frozenset({"date", "status"})  # at the beginning: "Date: 3 May 2025", but not "New opening date"
_MARKERS = frozenset("compiled created dated edited issued modified printed published revised updated".split())
_BESIDE_MARKERS = frozenset("at by last of on was".split())
_BESIDE_AUTHORS = frozenset("and by draft edition for of prepared revision the version with written".split())
_SENTENCE = re.compile(r"[^.;|]*(?:[.;|](?!\s|$)[^.;|]*)*")
_WORDS = re.compile(r"[^\W_][\w'’-]*")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")


def date_of(lines: Iterable[str], reference: datetime) -> datetime | None:
    """Return the day on which a text says that it was written, in the zone of a reference; None without one.

    It follows a word such as "updated", or stands alone or after names at the end of a sentence: "Oslo, 3 May 2025".
    """
    for line in lines:
        if line.lstrip().startswith("#") or len(line) > _LONGEST:
            continue  # a heading tells what the text is about
        for sentence in _SENTENCE.findall(line):
            if (span := _dateline(sentence, reference)) is not None:
                return span.begin
    return None


def _dateline(sentence: str, reference: datetime) -> DateSpan | None:
    """Return the only day that a sentence names, if it is that of the text."""
    if _YEAR.search(sentence) is None:
        return None
    spans = find_dates(sentence, reference)
    if len(spans) != 1 or spans[0].grain != "day" or _YEAR.search(spans[0].text) is None:
        return None
    before = sentence[: spans[0].start]
    said = [word for word in _words(before) if word.lower() not in WEEKDAYS]
    marker = next((word for word in reversed(said) if word.lower() not in _BESIDE_MARKERS), "").lower()
    begins_with = said[0].lower() if said else ""
    if marker in _MARKERS or begins_with in _LABELS or [word.lower() for word in said[-2:]] == ["as", "of"]:
        return spans[0]
    if ":" in before or _words(sentence[spans[0].end :]):
        return None
    parts = [words for part in before.split(",") if (words := [w for w in _words(part) if w.lower() not in WEEKDAYS])]
    named = [all(not word[0].islower() or word in _BESIDE_AUTHORS for word in words) for words in parts]
    is_short = all(is_name or len(words) <= _MOST_WORDS for is_name, words in zip(named, parts, strict=True))
    return spans[0] if is_short and (any(named) or not parts) else None


def _words(text: str) -> list[str]:
    return _WORDS.findall(text)
