"""Date of a text in its first lines: "Last edited 4 March 2026", "Ann Lee, 3 May 2025"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from graphmem.text.date_patterns import WEEKDAYS
from graphmem.text.dates import DateSpan, find_dates

HEAD_LINES = 12
"""Number of lines in which a text may have its date."""

_MOST_WORDS = 3  # of a part beside the name of who wrote a text: "Ann Lee, accounts, 3 May 2025"
_LONGEST = 300  # characters of such a line
_OF_OTHERS = re.compile("[#>]")  # a title, which tells what a text is about, or a quotation
_LISTED = re.compile(r"\||[-*+•]\s")  # an item or a row, whose only date is rather that of something else
_DAYS = frozenset(form for day in WEEKDAYS for form in (day, day[:3]))
_LABELS = frozenset({"date", "status"})
_OF_TEXTS = _LABELS | frozenset(
    "article document draft edition file issue last list minutes note of page publication report revision text the "
    "this update version".split()
)
"""Words of a label: "Status of this page: 3 May 2025", "Draft of 3 May 2025", but not "Date of birth"."""
_MARKERS = frozenset("compiled created dated edited issued modified printed published revised updated".split())
_NOT_YET = frozenset("be never next not to will".split())
_PASSIVE = frozenset("been is was were".split())
_BESIDE_AUTHORS = frozenset("and by draft edition for of prepared revision the version with written".split())
_SENTENCE = re.compile(r"[^.;|]*(?:[.;|](?!\s|$)[^.;|]*)*")
_PARTS = re.compile(r",|\s[-–—]\s")
_WORDS = re.compile(r"[^\W_][\w'’-]*")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")


def date_of(lines: Iterable[str], reference: datetime) -> datetime | None:
    """Return the day on which a text says that it was written, in the zone of a reference; None without one.

    It follows a word such as "updated" or "Date:", or stands alone or behind names at the end of a sentence: "Oslo,
    3 May 2025". A day of something else doesn't count: "born 3 May 1962", "the law was revised on 3 May 1999".
    """
    for line in lines:
        bare = line.lstrip()
        if len(line) > _LONGEST or _OF_OTHERS.match(bare):
            continue
        is_listed = _LISTED.match(bare) is not None
        for sentence in _SENTENCE.findall(line):
            if (span := _dateline(sentence, reference, may_be_signed=not is_listed)) is not None:
                return span.begin
    return None


def _dateline(sentence: str, reference: datetime, *, may_be_signed: bool) -> DateSpan | None:
    """Return the only day that a sentence names, if it is that of the text."""
    if _YEAR.search(sentence) is None:
        return None
    spans = find_dates(sentence, reference)
    if len(spans) != 1 or spans[0].grain != "day" or _YEAR.search(spans[0].text) is None:
        return None
    before, after = sentence[: spans[0].start], sentence[spans[0].end :]
    is_signed = may_be_signed and not _words(after) and _is_signed(before)
    return spans[0] if is_signed or _is_labelled(before) or _is_marked(_words(before.lower())) else None


def _is_marked(said: Sequence[str]) -> bool:
    """Return whether a date follows a word such as "updated" or "as of", which isn't said of something else."""
    if said[-2:] == ["as", "of"]:
        return len(said) <= _MOST_WORDS + 2  # "Prices as of", but not "She left the company as of"
    *subject, marker = (said[:-1] if said[-1:] in (["on"], ["at"]) else said) or [""]
    is_other = bool(_PASSIVE.intersection(subject)) and {"this", "page"}.isdisjoint(subject)
    return marker in _MARKERS and _NOT_YET.isdisjoint(subject) and not is_other


def _is_labelled(before: str) -> bool:
    label, colon, rest = before.lower().rpartition(":")
    words = set(_words(label))
    return bool(colon) and not _words(rest) and bool(words & _LABELS) and words <= _OF_TEXTS


def _is_signed(before: str) -> bool:
    """Return whether a date stands alone, behind a label, or after a name and a comma: "Ann Lee, accounts, "."""
    *parts, last = map(_words, _PARTS.split(before))
    if ":" in before or not _OF_TEXTS.issuperset(map(str.lower, last)):
        return False
    parts = [words for words in parts if words]
    named = [all(not word[0].islower() or word in _BESIDE_AUTHORS for word in words) for words in parts]
    is_short = all(is_name or len(words) <= _MOST_WORDS for is_name, words in zip(named, parts, strict=True))
    return is_short and (any(named) or not parts)


def _words(text: str) -> list[str]:
    """Return the words of a text without days of the week."""
    return [word for word in _WORDS.findall(text) if word.lower() not in _DAYS]
