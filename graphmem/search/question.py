"""Parsing of questions: the speakers, names, months and times in them (docs/concepts/search.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from types import MappingProxyType
from typing import Literal

from graphmem.recall.routing import is_global
from graphmem.search.names import Names, names_in
from graphmem.search.speakers import ASSISTANT, SIDES, USER, first_names, named_speaker, side_of
from graphmem.text.date_patterns import MONTHS, PART
from graphmem.text.dates import DateSpan, dates_and_periods, with_ranges
from graphmem.text.first_person import FIRST_PERSON, first_person, first_person_of
from graphmem.text.names import plain
from graphmem.text.normalize import STOP_WORDS, WORD

_NICKNAME = 3  # length of a name prefix that matches a speaker: "Mel"
_BARE_MONTH = re.compile(rf"(?:{PART}[\s-]\s*)?[a-z]+\.?", re.IGNORECASE)
_MAY = re.compile(r"\b(?:in|on|of|during|by|until|since|\d)\s+May\b|\bMay,?\s+\d")

_SINCE, _UNTIL = re.compile(r"\b(?:since|after|from)\s+$", re.I), re.compile(r"\b(?:before|until|till)\s+$", re.I)

Form = Literal["answer", "order", "summary"]
_VERBS = "can|could|did|do|does|had|has|have|might|should|will|would"  # not "is the user …": "is the user login …"


def _about(side: int) -> re.Pattern[str]:
    """Return a pattern of phrases about one side: "did the user", "the user's", "the user said"."""
    words = "|".join(word for word, its in SIDES.items() if its == side)
    return re.compile(
        rf"\b(?:{_VERBS})(?:n['’]t)? the (?:{words})\b|\b(?:the )?(?:{words})['’]s\b"
        rf"|\bthe (?:{words}) (?=(?:said|told|asked|is|was|{_VERBS})\b)",
        re.IGNORECASE,
    )


_ABOUT_SIDE = {side: _about(side) for side in (USER, ASSISTANT)}
_AFTER_AUXILIARY = re.compile(rf"\b(?:{_VERBS}|am|are|is|may|was|were)(?:n['’]t)? $", re.IGNORECASE)
_JOINED = re.compile(r",? (?:and|or|&) ", re.IGNORECASE)
_SUMMARY = re.compile(
    r"\bsummari[sz]e\b|\brecap\b"
    r"|\b(?:give|have|make|need|provide|show|want|write)(?: \w+){0,4} (?:summary|overview)\b"
    r"|^(?:an? |the )?(?:\w+ )?(?:summary|overview) of\b",
    re.IGNORECASE,
)
_BOTH_SIDES = re.compile(
    r"\b(?:summar(?:y|ies|i[sz]e\w*)|overview|recap)\b|\b(?:did|have|had) you\b"
    r"|\byou(?:['’]ve| have| had)? (?:advised|described|explained|gave|given|listed|mentioned|offered|outlined|proposed"
    r"|provided|recommended|said|showed|shown|suggested|told|wrote|written)\b",
    re.IGNORECASE,
)
"""Summaries need both sides, and so do questions about what the assistant told the user."""

_ORDER = re.compile(
    r"\b(?:in|the) (?:\w+ )?order (?:in|of)\b|\bin (?:the right |chronological |what |which )?order\b(?! to)"
    r"|\bchronolog\w*|\btimeline\b|\bsequence of\b|\bover time\b",
    re.IGNORECASE,
)

_ASKING = re.compile(
    r"^(?:(?:can|could|would|will) you\b)?(?: ?please\b)?(?: help me)?"
    r"|\b(?:(?:list|walk|give|provide|tell|show|describe|outline|summari[sz]e)\b(?: me)?(?: through)?)"
    r"|\b(?:an?|the) (?:[\w-]+ ){0,2}(?:summary|overview|recap|timeline|list|order|sequence) (?:of|in which)\b"
    r"|\b(?:I|we)(?:['’]ve| have)? (?:asked about|brought up|covered|discussed|mentioned|raised|talked about)\b"
    r"|\bdifferent (?:aspects|parts|points|things|topics)\b(?: (?:of|about))?"
    r"|\b(?:across|during|in|over|throughout) (?:all )?(?:my|our|the|these) (?:\w+ )?"
    r"(?:chat|conversation|discussion|session)s?\b"
    r"|,? ?\bin (?:chronological |the right )?order\b(?! to)|\b(?:over time|so far)\b"
    r"|\b(?:list|mention|name) only\b[^.?!]*",
    re.IGNORECASE,
)
"""Words that ask for an order or a summary, without naming its subject."""


@dataclass(frozen=True, slots=True)
class TimeRange:
    """The time range of a question, ``[begin, until)``; None means unbounded."""

    begin: datetime | None
    until: datetime | None


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A question parsed with the speakers and names of a memory.

    Attributes
    ----------
    text
        The text, without the words that ask for an order or a summary.
    first_person
        That text with the named speakers replaced by "I", as speakers refer to themselves.
    speakers
        Numbers of the speakers in the question.
    subject
        Number of the speaker whom the question is about: the only one, or of several the one who acts ("What did Ann
        tell Bob?"); None for "Ann and Bob", and without speakers.
    names
        Names of the memory in the question.
    seeds
        The names written as proper names.
    side
        Side of a chat with an assistant that the question is about: `USER` or `ASSISTANT`; 0 if it doesn't say.
    asker
        Number of the speaker who asks, where the question says it (`graphmem.text.first_person.with_asker`).
    form
        Whether the question asks for one "answer", an "order" of events, or a "summary".
    period
        The time that the question names ("yesterday", "since May 2025"), unless it is a month of any year.
    """

    text: str
    first_person: str
    speakers: tuple[int, ...]
    names: tuple[str, ...]
    seeds: tuple[str, ...]
    side: int = 0
    asker: int | None = None
    form: Form = "answer"
    subject: int | None = None
    period: TimeRange | None = None


def parse_question(
    text: str,
    speakers: Sequence[str],
    names: Names,
    called: Mapping[str, str] = MappingProxyType({}),
    *,
    now: datetime | None = None,
) -> ParsedQuestion:
    """Parse a question with the speakers and names of a memory, and the names by which speakers are called.

    Dates in it are relative to `now`; without it the question has no period. If several people speak, a question about
    "us" isn't attributed to the asker.
    """
    period = None if now is None else _period(text, now)
    text = _without_asker(_with_speaker(text, speakers), speakers)
    for name, speaker in {**first_names(speakers), **called}.items():
        flags = re.IGNORECASE if text.islower() else 0
        if _stands_alone(name, text, flags):
            own = f"the {speaker.lower()}" if side_of(None, speaker) else speaker
            text = re.sub(rf"\b{re.escape(name)}\b", lambda _, own=own: own, text, flags=flags)
    side, form = _side(text), _form(text)
    text = text if form == "answer" else _subject(text)
    roles = [k for k, speaker in enumerate(speakers) if side_of(None, speaker)]  # "user" is an ordinary word
    asked = tuple(k for k, speaker in enumerate(speakers) if k not in roles and _is_asked(speaker, text))
    who = [speakers[k] for k in asked]
    found, seeds = _named(text, [*who, *(speakers[k] for k in roles)], names)
    said = text if not roles or asked else _as_the_user(text)
    asker = next((k for k in asked if text.startswith(f"{speakers[k]}: ")), None)
    named = tuple(found), tuple(seeds)
    subject = _subject_of({k: speakers[k] for k in asked}, text)
    return ParsedQuestion(text, first_person(said, who), asked, *named, side, asker, form, subject, period)


def _with_speaker(text: str, speakers: Sequence[str]) -> str:
    """Return a question with the full name of the speaker who asks it (`graphmem.text.first_person.with_asker`)."""
    asker, colon, own = text.partition(": ")
    if not colon or asker in speakers or (speaker := named_speaker(asker, speakers)) is None:
        return text
    return f"{speaker}: {own}"


def _without_asker(text: str, speakers: Sequence[str]) -> str:
    """Return a question about "us" without the name of the one of several people who asks it."""
    if sum(not side_of(None, speaker) for speaker in speakers) > 1:
        for speaker in speakers:
            own = text.removeprefix(f"{speaker}: ")
            if own != text and first_person_of(own) == "plural":
                return own
    return text


def asks_for_order(text: str) -> bool:
    """Return whether a question asks for what happened in order of time: an order, a timeline, a development."""
    return _ORDER.search(text) is not None


def asks_for_overview(text: str) -> bool:
    """Return whether a question asks for a summary, or about the whole memory ("What did we talk about?")."""
    return _SUMMARY.search(text) is not None or is_global(text)


def _form(text: str) -> Form:
    return "summary" if _SUMMARY.search(text) else "order" if asks_for_order(text) else "answer"


def _subject(text: str) -> str:
    """Return a text without the words that ask for an order or a summary, unless little is left."""
    left = " ".join(_ASKING.sub(" ", text).split())
    return left if len([word for word in WORD.findall(left.lower()) if word not in STOP_WORDS]) > 1 else text


def _side(text: str) -> int:
    """Return the side that a question is about; a question in the first person is about the user."""
    for side, about in _ABOUT_SIDE.items():
        if about.search(text):
            return side
    return USER if FIRST_PERSON.search(text) and not _BOTH_SIDES.search(text) else 0


def _as_the_user(text: str) -> str:
    """Return a question about "the user" in the first person."""
    if not _ABOUT_SIDE[USER].search(text):
        return text
    text = re.sub(r"\b(?:the )?user['’]s\b", "my", text, flags=re.IGNORECASE)
    return re.sub(r"\bthe user\b", "I", text, flags=re.IGNORECASE)


def is_open(query: str, date: DateSpan) -> bool:
    """Return whether a date of a question is only the begin or the end of a time: "since May", "before May"."""
    before = query[: date.start]
    return _SINCE.search(before) is not None or _UNTIL.search(before) is not None


def covered(query: str, dates: Sequence[DateSpan], now: datetime) -> TimeRange:
    """Return the range from the first date to the last; "since May" ends now, "before May" has no begin."""
    begin, until = min(date.begin for date in dates), max(date.until for date in dates)
    if len(dates) > 1:
        return TimeRange(begin, until)
    before = query[: dates[0].start]
    if _UNTIL.search(before):
        return TimeRange(None, begin)
    if _SINCE.search(before):
        return TimeRange(begin, max(now, until))
    return TimeRange(begin, until)


def _period(text: str, now: datetime) -> TimeRange | None:
    text = with_ranges(text)
    dates = [date for date in dates_and_periods(text, now) if is_open(text, date) or not _is_month_alone(date)]
    return covered(text, dates, now) if dates else None


def _is_month_alone(date: DateSpan) -> bool:
    """Return whether a date is a month without a year, which may be that of any year."""
    return _BARE_MONTH.fullmatch(date.text) is not None and months(f"in {date.text}") > 0


def months(text: str) -> int:
    """Return a bit mask of the months in a text, bit 0 for January; "may" counts only in a date-like context."""
    words = {word.lower() for word in WORD.findall(text)}
    return sum(1 << i for i, m in enumerate(MONTHS) if m in words and (m != "may" or _MAY.search(text)))


def _subject_of(asked: Mapping[int, str], text: str) -> int | None:
    """Return which of the speakers in a question acts: the first one after an auxiliary verb, or else the first one.

    None if any of them are joined ("Ann and Bob"), since the question is then about both.
    """
    if len(asked) < 2:
        return next(iter(asked), None)
    forms = [rf"(?P<_{k}>(?i:{re.escape(name)})|{re.escape(name[:_NICKNAME])})" for k, name in asked.items()]
    mentions = list(re.finditer(rf"\b(?:{'|'.join(forms)})\b(?P<own>['’]s)?", text))
    if any(_JOINED.fullmatch(text[a.end() : b.start()]) for a, b in pairwise(mentions)):
        return None
    firsts = [found for found in mentions if not found["own"] and _AFTER_AUXILIARY.search(text[: found.start()])]
    named = firsts or [found for found in mentions if not found["own"]] or mentions
    return next((k for k in asked if named[0][f"_{k}"]), None) if named else None


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

    def is_seed(name: str) -> bool:
        """Return whether a significant word is capitalized: the "I" of "should I" isn't."""
        return any(is_capital(word) for word in name.split() if word not in STOP_WORDS)

    return found, [name for name in found if is_seed(name)]
