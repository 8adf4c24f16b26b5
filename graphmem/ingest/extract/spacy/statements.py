"""Parts of a clause's statement: the relation name from its verb, its times, and the validity of its facts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.clauses import Clause, dated
from graphmem.ingest.extract.spacy.names import End, Names
from graphmem.ingest.extract.spacy.parse_repairs import mend_tags
from graphmem.ingest.extract.spacy.render import Dates
from graphmem.text.dates import DateSpan, day_ago, find_dates

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token


_RANGE = re.compile(r" (?:to|until|till|-|–) ")


LATELY = 31
"""Days in which what began or happened still counts as new."""


@dataclass(frozen=True, slots=True)
class Statement:
    """Relation from the subject of a clause to a target, converted to an edge by `Facts`.

    A `presumed` ending is of a fact that may not be known: "sold the car" ends "drives". `until` is the end of a fact
    that holds from when it is told, whatever the dates of its clause: that of a deadline. An `event` happened once, and
    what is `planned` ends nothing yet.
    """

    relation: str
    target: End
    ended: bool = False
    explicit: bool = False
    source: End | None = None
    fact: str = ""
    timeless: bool = False
    certainty: float = 1.0
    presumed: bool = False
    until: datetime | None = None
    event: bool = False
    planned: bool = False


def concept(name: str) -> End:
    """Return a common noun as an end."""
    return End(name, "concept", named=False)


def thing_of(owner: End, noun: Token, names: Names) -> End:
    """Return a thing of somebody as an end: "Nora's car" for "my car"."""
    return End(f"{owner.name}'s {names.phrase(noun)}", "concept", named=True)


def presumed_end(relation: str, target: End, source: End | None = None) -> Statement:
    """Return the ending of a fact that may not be known."""
    return Statement(relation, target, ended=True, explicit=True, source=source, presumed=True)


def verb_form(clause: Clause) -> str:
    """Return the verb with its particle in the form of a relation: "loves", "went", "gave_up", "wants_to_adopt"."""
    verb = clause.verb
    lemma = verb.lemma_.lower()
    particle = next((f"_{c.lower_}" for c in verb.children if c.dep_ == "prt" and _is_particle(c, verb)), "")
    if clause.stance == "plans_to" and lemma in ("plan", "intend"):
        return "plans"
    if clause.stance == "considers":
        return f"considers_{verb.lower_}{particle}"
    if clause.stance:
        return f"{clause.stance}_{lemma}{particle}"
    if clause.passive:
        return f"{verb.lower_}{particle}"
    if clause.negated:
        return f"does_not_{lemma}{particle}"
    if has_got(clause):
        return "has"
    if clause.ended or clause.began or is_state(clause):
        return f"{words.third_person(lemma)}{particle}"
    return f"{words.past(lemma, verb.text, verb.tag_)}{particle}"


def _is_particle(token: Token, verb: Token) -> bool:
    """Return whether "up" belongs to the verb; in "explored the coast up in Maine" it doesn't."""
    following = token.nbor().lower_ if token.i + 1 < len(token.doc) else ""
    return token.i == verb.i + 1 or following not in ("in", "at", "on", "along", "near")


def is_state(clause: Clause) -> bool:
    """Return whether a clause describes a state rather than an event."""
    lemma = clause.verb.lemma_.lower()
    return (
        not clause.past
        or lemma in words.STRONG_STATES
        or has_got(clause)
        or (clause.ongoing and (lemma in words.STATES or clause.verb.tag_ == "VBG"))
        or (clause.ongoing and lemma in words.HABITS and any(t.lower_ == "since" for t in clause.verb.subtree))
    )


def has_got(clause: Clause) -> bool:
    """Return whether a perfect says what somebody has: "I've got a car"."""
    return clause.verb.lemma_ == "get" and clause.ongoing and not clause.stance


# Times --------------------------------------------------------------------------------------------


_DURATION = re.compile(
    r"\bfor (?:the (?:last|past) )?(?:about |around |almost |over )?"
    r"(\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve) "
    r"(day|week|month|year|decade)s?\b(?! old)"
)


def dates_of(doc: Doc, reference: datetime, *, message: bool) -> Dates:
    """Return the dates of a parsed text by token; a bare weekday or month after "will" or "going to" is in the future.

    In documents only dates with a year are used, since their time of writing is unknown. Verbs with a past date are
    retagged as past tense.
    """
    at: dict[int, DateSpan] = {}
    past = [d for d in find_dates(doc.text, reference) if message or re.search(r"\d{4}", d.text)]
    mend_tags(doc, Dates({t.i: d for d in past for t in _tokens(doc, d)}), reference)
    if not past:
        return Dates(at)
    ahead = {(d.start, d.end): d for d in find_dates(doc.text, reference, future=True)}
    for n, span in enumerate(past):
        tokens = _tokens(doc, span)
        if not tokens or any(t.lower_ in ("every", "each") for t in doc[max(0, tokens.start - 2) : tokens.start]):
            continue  # "every Sunday", "each second Friday": not a single day
        chosen = ahead.get((span.start, span.end), span) if _is_ahead(tokens[0]) else span
        last = ahead.get((past[n + 1].start, past[n + 1].end)) if n + 1 < len(past) else None
        if (
            last is not None
            and span.begin < last.begin < chosen.begin
            and _RANGE.fullmatch(doc.text, span.end, last.start)
        ):
            chosen = span  # "from 3 May to 10 May", told on 8 May
        at.update({t.i: chosen for t in tokens})
    return Dates(at)


def _tokens(doc: Doc, span: DateSpan) -> Span | tuple[()]:
    return doc.char_span(span.start, span.end, alignment_mode="expand") or ()


def _is_of_booked(token: Token) -> bool:
    """Return whether a date is that of what is booked, not of the booking: "booked a table for Friday"."""
    verb = dated(token)
    if verb.lemma_ not in words.BOOKING:
        return False
    lead = token.nbor(-1).lower_ if token.i > token.sent.start else ""
    booked = any(c.lower_ == "for" and verb.i < c.i < token.i for c in verb.subtree)
    months = lead in ("in", ",") and booked  # "for our anniversary, Friday the 13th"
    back = lead == "on" and token.i > 1 and token.nbor(-2).lower_ == "back"  # "back on the 18th"
    return lead in ("for", "from") or months or back  # "signed up for the marathon in May", not "for a class yesterday"


def _is_ahead(token: Token) -> bool:
    verb = dated(token)
    if token.i > token.sent.start and token.nbor(-1).lower_ == "since":
        return False
    if any(t.lower_ == "since" and t.dep_ == "prep" and t.i < token.i for t in (*token.ancestors, *verb.children)):
        return False  # "since my accident in March"
    if _is_of_booked(token) or (verb.lemma_ in words.SHIFTING and token.i > 0 and token.nbor(-1).lower_ == "to"):
        return True  # "moved the deadline to Friday"
    chain = list(_up_to_report(verb))
    if verb.lower_ == "got" and any(c.lower_ in ("'ve", "have", "'s", "has") for c in verb.children):
        return True  # "I've got an interview on Friday"
    if any(c.dep_ in ("aux", "auxpass") and (c.tag_ == "VBD" or c.lemma_ == "have") for c in verb.children):
        return False
    if any(c.lower_ in ("will", "'ll", "wo") for v in chain[:2] for c in v.children):
        return True
    before = token.nbor(-1).lower_ if token.i > token.sent.start else ""
    if verb.tag_ in ("VBP", "VBZ") and before != "since" and not any(v.tag_ == "VBD" for v in chain):
        return True  # "I start on Friday", "the wedding is in May", "I work there until June"
    if any(c.dep_ == "auxpass" and (c.lower_ == "getting" or c.tag_ in ("VBZ", "VBP")) for c in verb.children):
        return True  # "it's getting fixed on Friday", "it is booked in for Friday"
    return verb.tag_ in ("VB", "VBG") and not any(v.tag_ == "VBD" for v in chain)


def _up_to_report(verb: Token) -> Iterator[Token]:
    """Yield a verb and its governors up to one with a time of its own: a reporting verb, or that of a clause behind."""
    yield verb
    while (
        verb.head != verb
        and not (verb.dep_ == "conj" and verb.tag_ == "VBZ")
        and not (verb.dep_ == "ccomp" and (verb.head.lemma_ in words.REPORTING or verb.i < verb.head.i))
    ):
        verb = verb.head
        yield verb


@dataclass(frozen=True, slots=True)
class Period:
    """Time stated by a clause.

    Attributes
    ----------
    begin
        Beginning, or the time of an event.
    until
        End.
    close
        End of the day, month or year of `begin`, for what ends then: at the latest when a past is told.
    ahead
        Whether it begins after the message.
    over
        Whether it ended before the message.
    running
        Whether it includes the time of the message ("this month").
    days_so_far
        Days between its beginning and the message.
    limit
        End of the last day on which something may be done: "by 3 May", "before May".
    """

    begin: datetime | None = None
    until: datetime | None = None
    close: datetime | None = None
    ahead: bool = False
    over: bool = False
    running: bool = False
    days_so_far: int | None = None
    limit: datetime | None = None

    @classmethod
    def of(cls, clause: Clause, dates: Dates, reference: datetime) -> Period:
        """Return the period of a clause: "since", "until", "from … to", a date, "for three years" up to now."""
        begin: datetime | None = None
        until: datetime | None = None
        last: datetime | None = None
        close: datetime | None = None
        limit: datetime | None = None
        running = between = False
        chain = {t.i for t in clause.chain}
        for token in clause.verb.sent:
            span = dates.at.get(token.i)
            if span is None or not dates.first(token) or dated(token).i not in chain:
                continue
            word, late = _lead(token)
            if clause.past and word != "from" and _is_of_booked(token):
                continue
            moment = span.until if late else span.begin
            if word in ("until", "till") or (begin and (word in ("to", "-", "–") or (word == "and" and between))):
                last = last or moment
                until = until or (moment if span.grain == "hour" else span.until)  # an end includes its day or month
            elif word in ("by", "before"):
                limit = span.until if word == "by" else span.begin
            elif word not in ("before", "after", "by", "than", "of") and begin is None:
                ending = late and span.grain != "day"  # "at the end of June": on its last day
                begin, between = moment - timedelta(days=int(ending)), word == "between"
                close = moment if word == "since" or span.grain == "hour" else span.until
                if clause.past:
                    close = max(begin, min(close, reference))
                running = word != "since" and not late and span.grain not in ("hour", "day") and span.until > reference
        if begin is None and clause.ongoing:
            begin = close = _duration(clause, reference)
        over = until is not None and (until <= reference or (clause.past and last is not None and last <= reference))
        until = min(until, reference) if until is not None and over else until
        ahead = begin is not None and begin > reference
        so_far = (reference - begin).days if begin is not None and not ahead else None
        return cls(begin, until, close, ahead=ahead, over=over, running=running, days_so_far=so_far, limit=limit)

    def bounds(self, *, ended: bool) -> tuple[datetime | None, datetime | None]:
        """Return (valid_from, valid_to) of a fact; for an ended fact a date is its last one."""
        if ended and self.until is None:
            return None, self.close
        if self.begin and self.until and self.until <= self.begin:
            return self.begin, None
        return self.begin, self.until


def _lead(token: Token) -> tuple[str, bool]:
    """Return (preposition before a date, whether it refers to the end): "until the end of 2022"."""
    before = [t.lower_ for t in token.doc[max(token.sent.start, token.i - 4) : token.i]][::-1]
    if before[:1] == ["of"] and len(before) > 1 and before[1] in ("end", "beginning", "start", "middle"):
        rest = before[2:]
        return next((word for word in rest if word != "the"), ""), before[1] == "end"
    return (before[0] if before else ""), False


def duration_of(clause: Clause) -> re.Match[str] | None:
    """Return the number and the unit of a duration: "for three years"."""
    return _DURATION.search(clause.verb.sent.text.lower())


def _duration(clause: Clause, reference: datetime) -> datetime | None:
    """Return the beginning of a state that has lasted "for three years"."""
    match = duration_of(clause)
    return day_ago(match[1], match[2], reference) if match else None
