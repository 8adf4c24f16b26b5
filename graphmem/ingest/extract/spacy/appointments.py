"""Rules for what is on a day ahead: appointments, trips, deliveries and duties."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.clauses import Clause, objects_of, prepositions
from graphmem.ingest.extract.spacy.names import Names
from graphmem.ingest.extract.spacy.statements import Period, Statement, concept, thing_of
from graphmem.text.dates import written

if TYPE_CHECKING:
    from spacy.tokens import Token

_LIKELY = 0.7
_MONTH = 32


def trips(clause: Clause, names: Names, period: Period) -> Iterator[Statement]:
    """Yield plans_to_go_to for "I booked five nights in Crete from the 22nd of May"."""
    if clause.verb.lemma_ == "book" and clause.past and not clause.passive:
        stays = [t for t in objects_of(clause.verb, "dobj") if t.lower_ in words.STAYS]
        ways = [pair for head in (clause.verb, *stays) for pair in prepositions(head)] if stays else []
        places = (e for w, n in ways if w in ("in", "to") for e in names.end(n) if e.label in words.PLACES)
        yield from (Statement("plans_to_go_to", e, explicit=True) for e in places)
    if clause.verb.lemma_ not in ("get", "come", "be"):
        return
    adverbs = [c for c in clause.verb.children if c.dep_ in ("advmod", "prt", "acomp", "prep")]
    back = [c for c in adverbs if c.lower_ == "back"]
    off = [c for c in adverbs if c.lower_ == "off"] if clause.verb.lemma_ == "be" and period.ahead else []
    for word, noun in (pair for head in (clause.verb, *back, *off) for pair in prepositions(head)):
        for end in (e for e in names.end(noun) if e.label in words.PLACES):
            if word == "from" and back and clause.past:
                yield Statement("returned_from", end, explicit=True, event=True)
            elif word == "to" and off and not clause.past:
                yield Statement("plans_to_go_to", end, explicit=True)


def appointments(clause: Clause, names: Names, period: Period) -> Iterator[Statement]:
    """Yield the appointments in "I've got a dentist appointment tomorrow", "got a viewing this afternoon"."""
    verb = clause.verb
    if clause.stance == "plans_to" and period.ahead and not clause.negated and len(clause.chain) < 3:
        seen = words.VISITS if verb.lemma_ == "see" else words.TOLD["have"] if verb.lemma_ == "have" else ()
        for noun in (t for t in objects_of(verb, "dobj") if t.lower_ in seen):
            yield Statement(f"plans_to_{verb.lemma_}", concept(names.phrase(noun)), explicit=True)
    got = verb.lemma_ == "get" and clause.past and not clause.ongoing  # "got an interview tomorrow"
    if not got or clause.negated or period.begin is None or not (period.ahead or period.days_so_far == 0):
        return
    for noun in objects_of(verb, "dobj"):
        if noun.lower_ in words.APPOINTMENTS and not any(c.lower_ in ("the", "that") for c in noun.children):
            yield Statement("plans_to_have", concept(names.phrase(noun)), explicit=True)


def dated_plans(clause: Clause, names: Names, period: Period) -> Iterator[Statement]:
    """Yield what is on a day ahead: "our wedding is on 6 June", "the sofa arrives on Friday", "it is booked in"."""
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    soon = period.ahead or period.days_so_far == 0
    moved = clause.passive and lemma in words.SHIFTING and clause.past
    soon = soon or (moved and period.until is not None and not period.over)
    if not soon or (clause.past and not moved) or clause.stance not in ("", "plans_to") or names.speaker is None:
        return
    for noun in clause.subjects:
        if noun.pos_ not in ("NOUN", "PROPN") or noun.ent_type_ == "PERSON":
            continue
        whose = names.owner(noun) or names.speaker
        ours = {c.lower_ for c in noun.children if c.dep_ in ("det", "poss")} <= {"the", "my", "our", "his", "her"}
        limit = 1.0 if names.owner(noun) is not None else _LIKELY
        is_event = noun.lower_ in words.APPOINTMENTS | words.OCCASIONS - {"birthday"}
        if is_event and ours and whose.named and (lemma in ("be", "take", "start") or moved):
            place = next((e for w, n in prepositions(noun) if w == "to" for e in names.end(n) if e.named), None)
            flies = noun.lower_ in ("flight", "trip", "holiday", "train", "journey") and place is not None
            relation = "plans_to_fly_to" if noun.lower_ == "flight" else "plans_to_go_to"
            end = place if flies and place is not None else concept(names.phrase(noun))
            until = period.until if moved else None  # "pushed from Friday to 1 April"
            day = replace(period, begin=until - timedelta(days=1), close=until) if until is not None else period
            yield Statement(
                relation if flies else "plans_to_have",
                end,
                explicit=True,
                source=whose,
                fact=f"{_phrased(noun, names)} is{when(day)}.",
                certainty=limit,
                timeless=until is not None,
                until=until,
            )
        elif lemma in ("arrive", "come") and ours and _is_expected(noun):
            fact = f"{_phrased(noun, names)} {words.third_person(lemma)}{when(period)}."
            end = concept(names.phrase(noun))
            yield Statement("expects", end, explicit=True, source=whose, fact=fact, certainty=limit)
        elif lemma in ("expire", "end", "run") and noun.lower_ in words.EXPIRING and names.owner(noun) is not None:
            day, thing = concept(_when_bare(period)), thing_of(whose, noun, names)
            yield Statement("expires", day, explicit=True, source=thing, timeless=True, until=period.close)
        elif clause.passive and lemma == "book" and ours:
            booked = next(
                (e for w, n in prepositions(verb) if w == "for" and n.ent_type_ != "DATE" for e in names.word(n)), None
            )
            if booked is not None:
                thing = thing_of(whose, noun, names)
                yield Statement("is_booked_for", booked, explicit=True, source=thing, certainty=limit)


def _is_expected(noun: Token) -> bool:
    """Return whether somebody or something is expected: the sofa, the boiler man; not relatives or "the time"."""
    compound = any(c.dep_ == "compound" for c in noun.children)
    if not (compound or any(c.dep_ in ("det", "poss") for c in noun.children)):
        return False  # "rain is coming"
    return noun.lemma_.lower() not in words.RELATIONAL and (compound or noun.lower_ not in words.VAGUE)


def _phrased(noun: Token, names: Names) -> str:
    """Return a noun phrase with the name of its owner and without dates: "Nora's flight to Rome"."""
    whose = names.owner(noun)
    said = [t for t in noun.subtree if t.ent_type_ not in ("DATE", "TIME")]
    if said[0].lower_ in words.POSSESSIVES and whose is not None:
        said, lead = said[1:], f"{whose.name}'s "
    else:
        lead = ""
    text = f"{lead}{' '.join(t.text for t in said)}".replace(" 's ", "'s ")
    return f"{text[:1].upper()}{text[1:]}"


def when(period: Period) -> str:
    """Return the date of a period after a space: " on 3 May 2026"; "" without one."""
    if period.begin is None:
        return ""
    days = (period.close - period.begin).days if period.close is not None else 1
    return f" {written(period.begin, 'day' if days <= 1 else 'month' if days < _MONTH else 'year')}"


def _when_bare(period: Period) -> str:
    """Return the date of a period without its preposition: "3 May 2026"."""
    return when(period).strip().partition(" ")[2]


def duties(clause: Clause, names: Names, period: Period) -> Iterator[Statement]:
    """Yield what somebody has to do by a day: "I have to hand in my tax return by 31 March"."""
    chain = [v.lemma_ for v in clause.chain]
    bound = chain[:1] in (["have"], ["need"]) and len(chain) == 2
    if not bound or period.limit is None:
        return
    out = any(c.lower_ == "out" for c in clause.verb.children)
    if out and clause.verb.lemma_ in ("be", "move", "get"):
        yield Statement("has_to_leave", concept("home"), explicit=True, timeless=True, until=period.limit)
    elif clause.verb.lemma_ in words.DUTIES:
        particle = next((f"_{c.lower_}" for c in clause.verb.children if c.dep_ == "prt"), "")
        for end in (e for t in objects_of(clause.verb, "dobj") for e in names.ends(t) if not e.role):
            yield Statement(
                f"has_to_{clause.verb.lemma_}{particle}", end, explicit=True, timeless=True, until=period.limit
            )
