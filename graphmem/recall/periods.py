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


@dataclass(frozen=True, slots=True)
class _Asked:
    """A text with the sentence in it that asks, ``text[begin:end]``, and the tense of that."""

    text: str
    begin: int
    end: int
    tense: Tense

    @classmethod
    def read(cls, text: str) -> _Asked:
        """Read a text, in which the last sentence with a question mark asks, or else the last one."""
        spans = [match.span() for match in _SENTENCE.finditer(text) if match[0].strip()] or [(0, len(text))]
        begin, end = next((span for span in reversed(spans) if "?" in text[slice(*span)]), spans[-1])
        verb = _AUXILIARY.search(text[begin:end])
        if verb is None:
            return cls(text, begin, end, "unknown")
        return cls(text, begin, end, "past" if verb["past"] else "perfect" if verb["perfect"] else "present")

    @property
    def sentence(self) -> str:
        return self.text[self.begin : self.end]

    def is_of_change(self) -> bool:
        """Return whether it is for a change, not for what holds now: "the password since Ben changed it"."""
        is_course = self.tense != "present" and _COURSE.search(self.sentence) is not None
        return is_course or _CHANGE.search(self.sentence) is not None

    def main(self, dates: Iterable[DateSpan]) -> list[DateSpan]:
        """Return the dates in the sentence that no relative clause has: "Anna, whom I met in 2020"."""
        return [date for date in dates if self.begin <= date.start < self.end and not self._is_relative(date)]

    def _is_relative(self, date: DateSpan) -> bool:
        """Return whether a date follows a relative pronoun, unlike in "In which city did …"."""
        found = _RELATIVE.search(before := self.text[self.begin : date.start])
        return found is not None and len(before[: found.start()].split()) > 1


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
    asked, dates = _Asked.read(read), dates_and_periods(read, now)
    if asked.is_of_change():
        return _of_change(asked, [date for date in dates if date.begin < now], now)
    if over := [date for date in dates if date.until <= now]:
        return _dated(asked, over, now)
    if reaching := [date for date in dates if date.begin < now]:
        return Period(min(date.begin for date in reaching), now, leads=False) if asked.tense == "past" else None
    if not dates and (years := _bare_years(read, now)):
        begin, until = min(year.begin for year in years), max(year.until for year in years)
        return Period(begin, until, leads=asked.tense != "present")
    return _undated(asked, now)


def asks_ahead(query: str, now: datetime) -> bool:
    """Return whether a question may be about the future: "Where will she live?", "… in 2040"."""
    read = POLITE.sub(" ", query[:MAX_QUERY])
    return _AHEAD.search(read) is not None or any(date.begin > now for date in dates_and_periods(read, now))


def asks_end(query: str) -> bool:
    """Return whether a question may be about the end of something: "When did she leave?", "Until when …?"."""
    return _END.search(query[:MAX_QUERY]) is not None


def _bare_years(text: str, now: datetime) -> list[DateSpan]:
    """Return years of the past without a preposition, as in "Maya's home 2020"."""
    years = (m[0] for m in _YEAR.finditer(text) if _NUMBERED.search(text[max(0, m.start() - 8) : m.start()]) is None)
    return [date for year in years if (date := find_dates(f"in {year}", now)[0]).until <= now]


def _dated(asked: _Asked, dates: Sequence[DateSpan], now: datetime) -> Period:
    """Return the time of dates in the past: of those that date what is asked, or else of all."""
    main = asked.main(dates)
    used = main or dates
    leads, is_sure = bool(main) and asked.tense != "present", True
    first, last = min(date.begin for date in used), max(date.until for date in used)
    if len(used) == 1:
        before = asked.text[asked.begin if main else 0 : used[0].start]
        if (limit := _BEFORE_DATE.search(before)) is not None:
            first, last = START_OF_TIME, first
            is_sure = len(limit[0].split()) <= _CONJUNCTION  # "before 2020", not "before the race in 2020"
        elif _SINCE_DATE.search(before):
            return Period(first, now, leads=False)
    words = split_words(asked.sentence)[:2]  # "In which city did …"
    asks = "?" in asked.sentence or not set(QUESTION_WORDS).isdisjoint(words)
    alone = leads and is_sure and asks and asked.tense == "past" and not _is_about_now(asked.sentence)
    return Period(first, last, leads, alone)


def _of_change(asked: _Asked, dates: Sequence[DateSpan], now: datetime) -> Period:
    """Return the time of a change, from the day before its begin: that of the dates in the question, or all time."""
    if not (used := asked.main(dates)):
        return Period(START_OF_TIME, now, leads=False, ended=True, change=True)
    dated = _dated(asked, used, now)
    return Period(max(dated.begin, START_OF_TIME + _DAY) - _DAY, min(dated.until, now), leads=False, change=True)


def _is_about_now(sentence: str) -> bool:
    """Return whether a sentence in the past tense also asks for the present: "… and now?", "… and does she still?"."""
    verbs = (found[0].lower() for found in _AUXILIARY.finditer(sentence) if not found["past"] and not found["perfect"])
    return _NOW.search(sentence) is not None or any(verb != "do" for verb in verbs)


def _undated(asked: _Asked, now: datetime) -> Period | None:
    """Return the time before that of "previously", "before she moved to Oslo" or "ever"; None without such words."""
    if _FORMERLY.search(_ACCUSTOMED.sub(" ", asked.sentence)):
        return Period(START_OF_TIME, now, leads=True, ended=True)
    if asked.tense == "present":
        return None
    if (found := _BEFORE.search(asked.sentence)) is not None:
        return Period(START_OF_TIME, now, asked.tense != "perfect", ended=True, before=found["what"].strip())
    return Period(START_OF_TIME, now, leads=False, ended=True) if _EVER.search(asked.sentence) else None


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
