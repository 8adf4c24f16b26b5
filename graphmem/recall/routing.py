"""Classification of questions, and the past time that a question is about. Pure functions over words.

This module defines all markers. They are matched as whole words, case-insensitively.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from graphmem.models import AsOf, EdgeType, utc_now
from graphmem.models.base import START_OF_TIME, TICK
from graphmem.recall.options import RecallOptions
from graphmem.recall.subgraph import PAST
from graphmem.results import Fact, RecallResult, Strategy
from graphmem.text.dates import DateSpan, dates_and_periods, find_dates, with_ranges
from graphmem.text.normalize import MAX_QUERY, STOP_WORDS, split_words

Kind = Literal["episodic", "global", "graph", "keyword", "semantic", "hybrid"]

SUBGRAPH_MARKERS: dict[EdgeType, tuple[str, ...]] = {
    EdgeType.CAUSAL: (
        *("why", "because", "cause", "caused", "reason", "result"),
        *("led to", "consequence", "trigger", "effect"),
    ),
    EdgeType.TEMPORAL: (
        *("before", "after", "first", "then", "when", "timeline", "sequence"),
        *("preceded", "followed", "started", "ended", "during"),
    ),
    EdgeType.ENTITY: (
        *("is a", "type of", "kind of", "part of"),
        *("instance", "same as", "alias", "belongs to"),
    ),
}
"""Markers of the typed subgraph that a question is about (MAGMA, arXiv 2601.03236)."""

PAST_MARKERS = (
    *("when did", "when was", "when were", "when has", "when had", "how long ago", "how long has"),
    *("how long have", "how long did", "what time did", "what day did", "last time", "the other day"),
    *("recently", "lately", "earlier today", "this time last"),
)
FUTURE_MARKERS = ("when will", "how long until", "next time")
GRAPH_MARKERS = (
    *("related to", "relation to", "relationship", "relationships", "relation between", "connected to"),
    *("connection between", "history of", "linked to", "in common"),
)
GLOBAL_MARKERS = (
    *(
        f"{which} {what}"
        for which in ("main", "key", "major", "central", "common", "biggest", "most important", "what", "which")
        for what in ("topic", "topics", "theme", "themes", "subjects", "communities", "threads")
    ),
    *("this memory about", "the memory about", "all this about", "it all about", "everything about"),
    *(
        "everything you know",
        "what do you know",
        "what is known",
        "what have we talked about",
        "what did we talk about",
    ),
    *("an overview", "overview of", "the big picture", "as a whole"),
    *(f"summari{letter}e everything" for letter in "sz"),
)
"""Markers of a question about the whole memory, which communities answer rather than entities."""

QUESTION_WORDS = (
    *("what", "who", "whom", "whose", "which", "where", "when", "why", "how"),
    *("is", "are", "was", "were", "do", "does", "did", "has", "have", "had"),
    *("can", "could", "will", "would", "should"),
)
MANY_WORDS, FEW_WORDS = 6, 3

_ABOUT_ITSELF = frozenset(
    "conversation conversations memory graph data chat chats discussion discussions talk talks give tell show list "
    "please know known topic topics theme themes".split()
)

_OPINION = re.compile(
    r"(?<!\w)what\s++(?:does|do|did)\s++.{1,80}?\s++(?:think|feel|say|believe)\s+(?:about|of)(?!\w)", re.I | re.S
)
_PATH = re.compile(
    r"(?:^|\s)(?:(?:~|\.{1,2})?/[\w.-]+"  # absolute or relative path
    r"|(?!\d)[\w.-]+/(?:[\w.-]+/|[\w-]+\.\w)[\w./-]*"  # but not "and/or"
    r"|[A-Za-z]:\\\S+"
    r"|[\w-]+\.(?:py|md|toml|json|ya?ml|rs|go|ts|js|txt|csv|sql)\b)"
)
_SNAKE = re.compile(r"(?<!\w)[^\W_]\w*_\w+(?!\w)")
_SINCE, _UNTIL = re.compile(r"\b(?:since|after|from)\s+$", re.I), re.compile(r"\b(?:before|until|till)\s+$", re.I)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """The time range of a question, ``[begin, until)``; None means unbounded."""

    begin: datetime | None
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Route:
    """Classification of a question.

    Attributes
    ----------
    kind
        episodic (about a time), global (about the whole memory, answered by communities), graph (about relationships),
        keyword (a name or code), semantic (a question in natural language), hybrid (unclear).
    confidence
        Confidence of the classification, in [0, 1].
    reasons
        The markers found.
    """

    kind: Kind
    confidence: float
    reasons: tuple[str, ...]


def classify_subgraph(query: str) -> frozenset[EdgeType]:
    """Return the edge types that a question is about, including `semantic`; empty (all types) without a marker."""
    read = query[:MAX_QUERY]
    found = {kind for kind, pattern in _SUBGRAPH.items() if pattern.search(read)}
    return frozenset(found | {EdgeType.SEMANTIC}) if found else frozenset()


PLANS: dict[Kind, Strategy] = {
    "episodic": "ppr",
    "global": "ppr",
    "graph": "ppr",
    "keyword": "bfs",
    "semantic": "ppr",
    "hybrid": "ppr",
}
"""The strategy for each kind of question.

Keyword questions need the nearest facts, so they use breadth-first search. The others need the connections between
their names: ppr, which walks over facts and episodes, found more of the evidence on conversations and on multi-hop
questions (docs/concepts/recall.md).
"""


def plan(query: str, route: Route) -> tuple[Strategy, tuple[EdgeType, ...]]:
    """Return the strategy and the edge types (empty: all) for a question."""
    return PLANS[route.kind], tuple(sorted(classify_subgraph(query)))


@dataclass(frozen=True, slots=True)
class HeuristicRouter:
    """Classifier of questions by their words.

    Attributes
    ----------
    graph
        Whether a graph is available; without one, graph and global questions are classified as hybrid.
    """

    graph: bool = True

    def route(self, query: str, known_entities: Iterable[str] = (), *, now: datetime) -> Route:
        """Return the first matching kind of a question: episodic, global, graph, keyword, semantic, hybrid.

        Parameters
        ----------
        query
            The question; only the first 512 characters are used.
        known_entities
            Names of known entities.
        now
            Reference time of relative dates such as "yesterday"; timezone-aware.
        """
        read = query[:MAX_QUERY].strip()
        words = read.split()
        if (route := _episodic(read, now)) is not None:
            return route
        if reasons := tuple(found[0].lower() for found in _GLOBAL.finditer(read)):
            return Route("global" if self.graph else "hybrid", 0.9, reasons)
        if reasons := _relations(read):
            return Route("graph" if self.graph else "hybrid", 0.9, reasons)
        if named := _named(read, known_entities):
            return Route("graph" if self.graph else "hybrid", 0.7, tuple(f"names {name}" for name in named))
        if reasons := _code(read):
            return Route("keyword", 0.9, reasons)
        if 0 < len(words) <= FEW_WORDS:
            return Route("keyword", 0.6, (f"at most {FEW_WORDS} words",))
        if question := _QUESTION.match(read):
            return Route("semantic", 0.7, (f"begins with {question[0].lower()}",))
        if len(words) >= MANY_WORDS:
            return Route("semantic", 0.6, (f"at least {MANY_WORDS} words",))
        return Route("hybrid", 0.5, ())


def is_global(question: str) -> bool:
    """Return whether a question is about the whole memory: "What are the main topics?"."""
    return HeuristicRouter().route(question, now=utc_now()).kind == "global"


def narrowed(query: str) -> str | None:
    """Return the specific subject of a global question ("main topics of cooking"), or None if it has none."""
    rest = _GLOBAL.sub(" ", query[:MAX_QUERY])
    words = [word for word in split_words(rest) if word not in STOP_WORDS and word not in _ABOUT_ITSELF]
    return " ".join(words) or None


def _episodic(query: str, now: datetime) -> Route | None:
    dates = dates_and_periods(with_ranges(query), now)
    markers = (_PAST.search(query), _FUTURE.search(query))
    reasons = tuple(date.text for date in dates) + tuple(m[0].lower() for m in markers if m)
    return Route("episodic", 0.9 if dates else 0.8, reasons) if reasons else None


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


def _relations(query: str) -> tuple[str, ...]:
    return tuple(found[0].lower() for pattern in (_GRAPH, _OPINION) if (found := pattern.search(query)))


def _named(query: str, names: Iterable[str]) -> tuple[str, ...]:
    lower = query.lower()
    return tuple(name for name in names if name and name.lower() in lower and _whole([name]).search(query))


def _code(query: str) -> tuple[str, ...]:
    checks = (("a path", _PATH.search(query)), ("::", "::" in query), ("snake_case", _SNAKE.search(query)))
    return tuple(name for name, found in checks if found)


def _whole(markers: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that matches any of the markers as whole words."""
    phrases = (r"\s+".join(map(re.escape, marker.split())) for marker in markers)
    return re.compile(rf"(?<!\w)(?:{'|'.join(phrases)})(?!\w)", re.IGNORECASE)


_SUBGRAPH = {kind: _whole(markers) for kind, markers in SUBGRAPH_MARKERS.items()}
_PAST, _FUTURE, _GRAPH, _QUESTION, _GLOBAL = map(
    _whole, (PAST_MARKERS, FUTURE_MARKERS, GRAPH_MARKERS, QUESTION_WORDS, GLOBAL_MARKERS)
)


# Past times ---------------------------------------------------------------------------------------


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
    """

    begin: datetime
    until: datetime
    leads: bool
    alone: bool = False
    ended: bool = False
    before: str = ""


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
    if (over := [date for date in dates if date.until <= now]) or (over := _bare_years(read, dates, now)):
        return _dated(read, over, (begin, end), tense, now)
    if reaching := [date for date in dates if date.begin < now]:
        return Period(min(date.begin for date in reaching), now, leads=False) if tense == "past" else None
    return _undated(read[begin:end], tense, now)


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

    If the period isn't meant alone, the scores of the other facts are halved. None of them comes before the best of the
    same source and relation, and they may have half of the result if the period leads.
    """
    ids = {fact.id for fact in then.facts}
    if period.alone:
        others = [fact for fact in present.facts if fact.id not in ids and _overlaps(fact, period)]
        return then.changed(facts=(*then.facts, *others)[:limit])
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
    """Return a fact whose score counts as that of one that doesn't hold at the time that the question is about."""
    parts = fact.parts and fact.parts.changed(past=fact.parts.past * PAST, evidence=fact.parts.evidence * PAST)
    return fact.changed(score=(fact.score or 0.0) * PAST, parts=parts)
