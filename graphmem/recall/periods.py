"""Past period that a question is about, and recall of what held in it. Pure functions over words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from graphmem.models import AsOf
from graphmem.models.base import START_OF_TIME, TICK
from graphmem.recall.options import RecallOptions
from graphmem.recall.routing import QUESTION_WORDS
from graphmem.recall.subgraph import PAST_FACTOR
from graphmem.results import Fact, RecallResult
from graphmem.text.date_patterns import POLITE
from graphmem.text.dates import DateSpan, dates_and_periods, find_dates, with_ranges
from graphmem.text.normalize import MAX_QUERY, split_words

Tense = Literal["past", "perfect", "present", "unknown"]

_ABBREVIATED = r"(?i:(?<=\be\.g)|(?<=\bi\.e)|(?<=\b(?:jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec))|(?<=\bsept))\."
_SENTENCE = re.compile(rf"[^.?!]+(?:(?:[.?!](?!\s|$)|{_ABBREVIATED}(?=\s+[^A-Z\s]))[^.?!]*)*[.?!]*\s*")
_ASKER = re.compile(r"[\w .'’-]{1,60}: ")
_AUXILIARY = re.compile(
    r"\b(?:(?P<past>did|was|were|had)|(?P<perfect>has|have)"
    r"|(?P<present>am|are|can|could|do|does|is|(?-i:may)|might|must|shall|should|will|would|wo(?=n['’]t)))(?:n['’]?t)?\b"
    r"|\b(?P<short>he|how|it|she|that|there|what|when|where|who)['’]s\b",
    re.I,
)
_NOW = re.compile(
    r"\b(?:any ?more|at (?:present|the moment)|currently|now|nowadays|presently|so far|these days|to ?day|to date)\b",
    re.I,
)
_RELATIVE = re.compile(r"\b(?:that|which|who|whom|whose)\b[^,;]*$", re.I)
_BEFORE_DATE = re.compile(r"\b(?:before|earlier than|prior to|till|until|up to)\b[^,;]*$", re.I)
_DAY = timedelta(days=1)
_CONJUNCTION = 2  # words: "prior to", "earlier than"
_SINCE_DATE = re.compile(r"\b(?:after|since)\b[^,;]*$|\bfrom\s+$", re.I)
_YEAR = re.compile(r"(?<![\w$€£.,/-])(?:19|20)\d\d(?![\w%/-]|[.,]\d)")
_NUMBERED = re.compile(  # before a year that find_dates would have read
    r"\b(?:in|since|until|till|by|during|from|to|before|after|around|of|circa)\s$", re.I
)
_BEFORE = re.compile(r"\b(?:before|prior to)\b(?P<what>[^?.!;]*)", re.I)
_FORMERLY = re.compile(
    r"\bused to\b|\bdid(?:n['’]?t)?\b.*\buse to\b|\b(?:former|previous)(?:ly)?\b|\bin the past\b|\bno longer\b", re.I
)
_ACCUSTOMED = re.compile(r"\b(?:am|are|be|been|gets?|getting|got|is|was|were)(?: \w+){0,2} used to\b", re.I)
_EVER = re.compile(r"\bever\b", re.I)
_AHEAD = re.compile(
    r"\b(?:coming|future|going to|next|plan(?:ned|ning|s?\s{1,4}to)|shall|soon|upcoming|will|wo(?=n['’]t\b))\b"
    r"|['’]ll\b",
    re.I,
)
_END = re.compile(
    r"\b(?:until when|till when|last day|how long (?:did|had|was|were)|when\b[^?.!]{0,100}"
    r"\b(?:end(?:s|ed)?|expires?d?|finish(?:ed)?|leaves?|left|over|quit|resign(?:ed)?|retired?|stop(?:s|ped)?))\b",
    re.I,
)
_ADVERBIAL = "after|because|before|if|once|since|when|while"
_RELATIVE_CLAUSE = "that|where|which|who(?:se)?"
_CHANGE = re.compile(
    rf"\bhow\b(?! long\b)(?: \w+){{0,3}} (?:did|had|has|have)\b(?:(?!\b(?:{_ADVERBIAL})\b)[^?.!]){{0,100}}"
    r"\b(?:chang(?:ed?|es|ing)|(?:develop(?:ed|ing|s)?|evol(?:ved?|ves|ving)|shift(?:ed|s)?)"
    r"(?! (?:an?|any|her|his|its|my|our|the|their|this|your)\b))\b"
    r"|\bwhat\b(?! (?:am|are|can|could|do|does|is|should|will|would)\b|['’]s\b)"
    rf"(?:(?!\b(?:{_ADVERBIAL}|{_RELATIVE_CLAUSE})\b)[^?.!]){{0,60}}\bchanged\b"
    r"|\bwhat(?:['’]s| is| are)(?: (?:all|else|just|recently))? changed\b"
    r"|\bwhat did (?:(?!(?:about|for|in|of|on|to|with)\b)[\w'’]+ ){1,4}change\b"
    r"|\bhow do(?:es)?\b[^?.!]{0,100}\bover time\b"
    r"|^\W*(?:(?:can|could|would) you )?(?:(?:what(?:['’]s| is| was)|tell (?:me|us)(?: about)?|show(?: (?:me|us))?"
    r"|give (?:me|us)|describe|explain|list|recap|summari[sz]e) )?(?:the )?(?:\w+ )?history of\b",
    re.I,
)
_COURSE = re.compile(  # of a change, unless it is asked in the present tense
    r"\b(?:over|through) (?:time|the (?:days|months|weeks|years))\b|\bbefore and after\b", re.I
)


@dataclass(frozen=True, slots=True)
class Period:
    """A time of the past, ``[begin, until)``, that a question is about.

    Attributes
    ----------
    begin, until
        The time; `START_OF_TIME` without a begin, and the present if it reaches to it.
    leads
        Whether what held then comes before what holds now; otherwise it follows.
    alone
        Whether what didn't hold then is left out. False if it is in doubt that the question is about that time.
    ended
        Whether only what is over by `until` is meant: "used to live".
    before
        Words for what came after it: "she moved to Oslo" in "before she moved to Oslo".
    change
        Whether a change in it is asked for, so that what held before counts as much as what holds now.
    """

    begin: datetime
    until: datetime
    leads: bool
    alone: bool = False
    ended: bool = False
    before: str = ""
    change: bool = False


def without_dates(query: str, now: datetime) -> str:
    """Return a question without its dates, so that their words don't count once they select the facts."""
    query = with_ranges(query)
    for date in sorted(dates_and_periods(query, now), key=lambda date: -date.start):
        query = f"{query[: date.start]} {query[date.end :]}"
    return query


def period_of(query: str, now: datetime) -> Period | None:
    """Return the time of the past that a question is about: "in 2020", "before June", "previously"; None without one.

    The sentence that asks is about a time if its first auxiliary verb is in the past tense, or it has none. A date in
    another sentence or a relative clause ("Anna, whom I met in 2020"), beside "now" or in the present tense may date
    something else, so that what holds now is asked for as well.
    """
    read = with_ranges(query[:MAX_QUERY])
    if (asker := _ASKER.match(read)) is not None:
        read = " " * asker.end() + read[asker.end() :]
    begin, end = _asking(read)
    tense = _tense(read[begin:end])
    dates = dates_and_periods(read, now)
    if _is_of_change(read[begin:end], tense):
        return _of_change(read, dates, (begin, end), tense, now)
    if (over := [date for date in dates if date.until <= now]) or (over := _bare_years(read, dates, now)):
        return _dated(read, over, (begin, end), tense, now)
    if reaching := [date for date in dates if date.begin < now]:
        return Period(min(date.begin for date in reaching), now, leads=False) if tense == "past" else None
    return _undated(read[begin:end], tense, now)


def asks_ahead(query: str, now: datetime) -> bool:
    """Return whether a question may be about the future: "Where will she live?", "… in 2040"."""
    read = POLITE.sub(" ", query[:MAX_QUERY])
    return _AHEAD.search(read) is not None or any(date.begin > now for date in dates_and_periods(read, now))


def asks_end(query: str) -> bool:
    """Return whether a question may be about the end of something: "When did she leave?", "Until when …?"."""
    return _END.search(query[:MAX_QUERY]) is not None


def _asking(text: str) -> tuple[int, int]:
    """Return the begin and the end of the last sentence with a question mark, or else of the last sentence."""
    found = [match.span() for match in _SENTENCE.finditer(text) if match[0].strip()] or [(0, len(text))]
    return next((span for span in reversed(found) if "?" in text[slice(*span)]), found[-1])


def _tense(sentence: str) -> Tense:
    found = _AUXILIARY.search(sentence)
    if found is None:
        return "unknown"
    return "past" if found["past"] else "perfect" if found["perfect"] else "present"


def _bare_years(text: str, dates: Sequence[DateSpan], now: datetime) -> list[DateSpan]:
    """Return years of the past without a preposition, as in "Maya's home 2020", if there are no other dates."""
    if dates:
        return []
    years = (m[0] for m in _YEAR.finditer(text) if _NUMBERED.search(text[max(0, m.start() - 8) : m.start()]) is None)
    found = (find_dates(f"in {year}", now)[0] for year in years)
    return [DateSpan(0, 0, date.text, date.begin, date.until, "year") for date in found if date.until <= now]


def _dated(text: str, dates: Sequence[DateSpan], asking: tuple[int, int], tense: Tense, now: datetime) -> Period:
    begin, end = asking
    sentence = text[begin:end]
    is_bare = dates[0].end == 0
    main = [date for date in dates if begin <= date.start < end and not _is_relative(text[begin : date.start])]
    used = main or dates
    leads, is_sure = bool(main or is_bare) and tense != "present", not is_bare
    first, last = min(date.begin for date in used), max(date.until for date in used)
    if len(used) == 1 and not is_bare:
        before = text[begin if main else 0 : used[0].start]
        if (limit := _BEFORE_DATE.search(before)) is not None:
            first, last = START_OF_TIME, first
            is_sure = len(limit[0].split()) <= _CONJUNCTION  # "before 2020", not "before the race in 2020"
        elif _SINCE_DATE.search(before):
            return Period(first, now, leads=False)
    asks = "?" in sentence or not set(QUESTION_WORDS).isdisjoint(split_words(sentence)[:2])  # "In which city did …"
    alone = leads and is_sure and asks and tense == "past" and not _is_about_now(sentence)
    return Period(first, last, leads, alone)


def _is_of_change(sentence: str, tense: Tense) -> bool:
    """Return whether a question is for a change, not for what holds now: "the password since Ben changed it"."""
    return _CHANGE.search(sentence) is not None or (tense != "present" and _COURSE.search(sentence) is not None)


def _of_change(text: str, dates: Sequence[DateSpan], asking: tuple[int, int], tense: Tense, now: datetime) -> Period:
    """Return the time of a change, from the day before its begin: that of the dates in the question, or all time."""
    begin, end = asking
    inside = [date for date in dates if date.begin < now and begin <= date.start < end]
    used = [date for date in inside if not _is_relative(text[begin : date.start])]
    if not used:
        return Period(START_OF_TIME, now, leads=False, ended=True, change=True)
    dated = _dated(text, used, asking, tense, now)
    return Period(max(dated.begin, START_OF_TIME + _DAY) - _DAY, min(dated.until, now), leads=False, change=True)


def _is_about_now(sentence: str) -> bool:
    """Return whether a sentence in the past tense also asks for the present: "… and now?", "… and does she still?"."""
    verbs = (found[0].lower() for found in _AUXILIARY.finditer(sentence) if not found["past"] and not found["perfect"])
    return _NOW.search(sentence) is not None or any(verb != "do" for verb in verbs)


def _is_relative(before: str) -> bool:
    """Return whether the text before a date in its sentence ends in a relative clause, not in "In which city did …"."""
    found = _RELATIVE.search(before)
    return found is not None and len(before[: found.start()].split()) > 1


def _undated(sentence: str, tense: Tense, now: datetime) -> Period | None:
    if _FORMERLY.search(_ACCUSTOMED.sub(" ", sentence)):
        return Period(START_OF_TIME, now, leads=True, ended=True)
    if tense == "present":
        return None
    if (found := _BEFORE.search(sentence)) is not None:
        return Period(START_OF_TIME, now, tense != "perfect", ended=True, before=found["what"].strip())
    return Period(START_OF_TIME, now, leads=False, ended=True) if _EVER.search(sentence) else None


def options_then(options: RecallOptions, period: Period) -> RecallOptions:
    """Return the options of a recall of what held in a period."""
    return options.changed(as_of=AsOf(valid=period.until - TICK), ended_after=period.begin, only_ended=period.ended)


def until_begin_of(period: Period, facts: Iterable[Fact], question: str) -> Period | None:
    """Return the period up to the begin of the best fact whose target its `before` names; None without one.

    A fact whose source the question names is better than others.
    """
    words, asked = set(split_words(period.before)), set(split_words(question))
    targets = ((fact, set(split_words(fact.target))) for fact in facts if words and fact.valid_from > START_OF_TIME)
    named = [fact for fact, target in targets if target and target <= words]
    if not named:
        return None
    best = next((fact for fact in named if asked.issuperset(split_words(fact.source))), named[0])
    return replace(period, until=best.valid_from, ended=False)


def joined(period: Period, then: RecallResult, present: RecallResult, limit: int) -> RecallResult:
    """Return what held in a period with what holds now, in the order that the question asks for.

    The scores of the other facts are halved, unless the period is meant alone or a change in it is asked for. None of
    them comes before the best of the same source and relation, and they may have half of the result if the period
    leads.
    """
    ids = {fact.id for fact in then.facts}
    if period.alone:
        others = [fact for fact in present.facts if fact.id not in ids and _overlaps(fact, period)]
        return then.changed(facts=(*then.facts, *others)[:limit])
    if period.change:  # among what holds now, what is over has half of its score
        kept, others = tuple(fact for fact in present.facts if fact.id not in ids), list(then.facts)
    else:
        first, second = (then, present) if period.leads else (present, then)
        ids = {fact.id for fact in first.facts}
        others = [_halved(fact) for fact in second.facts if fact.id not in ids]
        room = min(len(others), limit // 2) if period.leads else 0
        kept = first.facts[: limit - room]
    best: dict[tuple[str, str], float] = {}
    for fact in kept:
        slot = fact.source_id, fact.relation
        best[slot] = max(best.get(slot, 0.0), fact.score or 0.0)

    def rank(fact: Fact) -> float:
        score = fact.score or 0.0
        return -min(score, best.get((fact.source_id, fact.relation), score))

    if period.leads:
        others = others[: limit - len(kept)]
    return present.changed(facts=tuple(sorted((*kept, *others), key=rank)[:limit]))


def _overlaps(fact: Fact, period: Period) -> bool:
    return fact.valid_from < period.until and (fact.valid_to is None or fact.valid_to > period.begin)


def _halved(fact: Fact) -> Fact:
    """Halve the score of a fact that doesn't hold at the time of the question."""
    parts = fact.parts and fact.parts.changed(
        past=fact.parts.past * PAST_FACTOR, evidence=fact.parts.evidence * PAST_FACTOR
    )
    return fact.changed(score=(fact.score or 0.0) * PAST_FACTOR, parts=parts)
