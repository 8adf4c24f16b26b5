"""Rules for what people live with: skills, health, habits, possessions.

Like those of `events`, `appointments` and `money_and_work`, their statements are explicit: their words alone say that
they are worth keeping. "My car" is an end of its own there, as in "Nora's car". The tables are in words.toml.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.appointments import appointments, dated_plans, duties, trips
from graphmem.ingest.extract.spacy.clauses import Clause, helpers, objects_of, prepositions
from graphmem.ingest.extract.spacy.events import abstinence, ages, events, expected, schools, suffered
from graphmem.ingest.extract.spacy.money_and_work import money, rates, studies
from graphmem.ingest.extract.spacy.names import End, Names
from graphmem.ingest.extract.spacy.statements import Period, Statement, concept, is_state, presumed_end

if TYPE_CHECKING:
    from spacy.tokens import Token

_LIKELY = 0.7
_COMMON = 0.6


def lived(clause: Clause, subject: End, names: Names, period: Period) -> Iterator[Statement]:
    """Yield the statements of a clause about the life of its subject; of a thing or a pet, what happened to it."""
    if subject.kind != "person":
        if subject.named and not (clause.negated or clause.ended):
            yield from events(clause)
            yield from _needs(clause)
        return
    yield from appointments(clause, names, period)
    if clause.ended:
        return
    yield from _skills(clause, names)
    yield from duties(clause, names, period)
    if clause.negated:
        yield from _avoided(clause, names)
        yield from abstinence(clause)
        return
    yield from ages(clause, period)
    yield from expected(clause, period)
    yield from trips(clause, names, period)
    if clause.stance:
        return
    yield from events(clause)
    yield from studies(clause, names)
    own = names.speaker is not None and subject.name.startswith((names.speaker.name, f"{names.speaker.name}'s "))
    yield from money(clause, names, own=own)
    yield from _habits(clause)
    yield from _possessions(clause, names)
    yield from _whereabouts(clause, names, period)
    yield from _languages(clause)
    yield from schools(clause, names)
    yield from _needs(clause)


def befallen(clause: Clause, names: Names, period: Period) -> Iterator[Statement]:
    """Yield what happens to what has an owner, and to others than the subject: "my car got stolen", "they fired me"."""
    if clause.negated or clause.ended or names.speaker is None:
        return
    yield from dated_plans(clause, names, period)
    yield from _first_language(clause, names)
    yield from rates(clause, names, period)
    yield from suffered(clause, names, period)


def _skills(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield can and cannot for "I can't swim", plays for "I can play the piano", speaks for "I can speak Welsh"."""
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    if clause.stance != "can":
        return
    relation, other = ("cannot", "can") if clause.negated else ("can", "cannot")
    objects = [e for t in objects_of(verb, "dobj") for e in names.ends(t) if not e.role]
    if lemma in words.SKILLS and not objects_of(verb, "dobj"):
        yield Statement(relation, concept(lemma), explicit=True)
        yield presumed_end(other, concept(lemma))
    elif lemma in ("play", "speak") and not clause.negated:
        fits = (e for e in objects if lemma != "speak" or e.named)
        yield from (Statement(words.third_person(lemma), e, explicit=True) for e in fits)


def _avoided(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield does_not_eat for "my kids won't eat mushrooms"."""
    wont = any(h.lower_ in ("wo", "will") for h in helpers(clause.verb))
    if clause.verb.lemma_ == "have" and any(h.lower_ in ("ca", "can") for h in helpers(clause.verb)):
        foods = (t for t in objects_of(clause.verb, "dobj") if t.lower_ in words.FOODS)
        yield from (Statement("does_not_eat", e, explicit=True) for t in foods for e in names.ends(t))
    if wont and clause.verb.lemma_ in ("eat", "drink", "touch"):
        for end in (e for t in objects_of(clause.verb, "dobj") for e in names.ends(t) if not e.role):
            yield Statement(f"does_not_{clause.verb.lemma_}", end, explicit=True)


def _languages(clause: Clause) -> Iterator[Statement]:
    """Yield speaks for "I speak Italian, English and a bit of Greek", however they are tagged."""
    verb = clause.verb
    if verb.lemma_ == "speak" and not clause.past and verb.tag_ in ("VBP", "VBZ", "VB"):
        inside = (t for t in verb.subtree if t.ent_type_ in ("NORP", "LANGUAGE") and t.i > verb.i)
        plain = (t for t in inside if t.head.lower_ == "of" or t.dep_ in ("dobj", "acomp", "conj", "oprd"))
        yield from (Statement("speaks", End(t.text, "language", named=True), explicit=True) for t in plain)


def _first_language(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield has_first_language for "Welsh is my first language" and "my native language is Welsh"."""
    if clause.verb.lemma_ != "be" or clause.past or clause.stance:
        return
    nouns = [*clause.subjects, *objects_of(clause.verb, "attr", "acomp")]
    own = next((t for t in nouns if t.lower_ in ("language", "tongue")), None)
    if own is None or (owner := names.owner(own)) is None:
        return
    kind = {c.lower_ for c in own.children} & {"first", "native", "mother", "second"}
    for noun in nouns if kind else ():
        if noun != own and noun.text.istitle():
            which = "second" if "second" in kind else "first"
            fact = f"{owner.name}'s {which} language is {noun.text}."
            end = End(noun.text, "language", named=True)
            yield Statement(f"has_{which}_language", end, explicit=True, source=owner, fact=fact)


def _needs(clause: Clause) -> Iterator[Statement]:
    """Yield needs for "my cat needs insulin twice a day"."""
    if clause.verb.lemma_ == "need" and clause.verb.tag_ in ("VBP", "VBZ") and not clause.stance:
        cures = (t for t in objects_of(clause.verb, "dobj") if t.lower_ in words.MEDICINES | words.CARES)
        yield from (Statement("needs", concept(t.lower_), explicit=True) for t in cures)


def _habits(clause: Clause) -> Iterator[Statement]:
    """Yield does for "I swim on Tuesdays", "I've been running 5k every morning", "she does ballet on Saturdays"."""
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    if any(h.lower_ in ("does", "do") for h in helpers(verb)) and verb.lower_ in words.ACTIVITIES:
        yield Statement("does", concept(verb.lower_), explicit=True)
        yield from (Statement("does", concept(t.lower_), explicit=True) for t in verb.conjuncts if t.i > verb.i)
        return
    if (clause.past and not clause.ongoing) or clause.passive or lemma not in words.EXERCISES:
        return
    times = (t for t in verb.subtree if t.ent_type_ in ("DATE", "TIME", "") and t.i > verb.i)
    said = {t.lower_ for t in times}
    often = bool(said & {*words.HABITUAL, "twice", "once", "times", "daily", "weekly"})
    often = often or any(t.removesuffix("s") in words.CALENDAR and t.endswith("s") for t in said)
    objects = [t for t in objects_of(verb, "dobj") if not _is_distance(t)]
    other = any(c.dep_ in ("acomp", "prt", "agent") or c.lower_ in ("late", "around", "out") for c in verb.children)
    if often and not (objects or other):
        yield Statement("does", concept(words.EXERCISES[lemma]), explicit=True)


def _is_distance(noun: Token) -> bool:
    return bool(re.match(r"\d", noun.text)) or noun.lower_ in ("miles", "mile", "km", "kilometres", "laps", "lengths")


def _possessions(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield has for "we have a caravan in Dorset", "my wife has got an electric car, a Renault Zoe", "I keep bees"."""
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    has = (lemma == "have" and not clause.past) or (lemma == "get" and clause.ongoing)
    allergies = [t for t in objects_of(verb, "dobj") if has and t.lemma_ in ("allergy", "intolerance")]
    causes = (n for head in (*allergies, *(verb for _ in allergies)) for w, n in prepositions(head) if w == "to")
    yield from (Statement("is_allergic_to", e, explicit=True) for n in causes for e in names.ends(n) if not e.role)
    for noun in objects_of(verb, "dobj") if has and not clause.passive else ():
        articles = {c.lower_ for c in noun.children if c.dep_ in ("det", "nummod", "poss")}
        if noun.lower_ not in words.POSSESSIONS or not articles & {"a", "an", "our", "my"}:
            continue
        models = [t for t in noun.children if t.dep_ == "appos" and t.pos_ == "PROPN"]
        named = [e for t in models for e in names.end(t) if not e.role]
        for end in named:
            thing = End(end.name, "concept", named=True, certainty=_LIKELY)
            yield Statement(words.has(noun.lower_), thing, explicit=True)
        if not named:
            yield from (Statement("has", e, explicit=True) for e in names.end(noun))


def _whereabouts(clause: Clause, names: Names, period: Period) -> Iterator[Statement]:
    """Yield is_in for "I'm in Chicago until Thursday", and is_looking_for for "I'm looking for a flat"."""
    verb = clause.verb
    if verb.lemma_ == "be" and is_state(clause) and not clause.past and period.until is not None:
        places = (e for w, n in prepositions(verb) if w == "in" for e in names.end(n) if e.label in words.PLACES)
        yield from (Statement("is_in", e, explicit=True) for e in places)
    if verb.lower_ == "looking" and (not clause.past or clause.ongoing):
        sought = (n for w, n in prepositions(verb) if w == "for" and n.lower_ in words.SOUGHT)
        for noun in (n for n in sought if not any(c.lower_ in ("the", "my", "that") for c in n.children)):
            inside = next((e for w, n in prepositions(noun) if w in ("in", "as") for e in names.end(n)), None)
            name = f"{names.phrase(noun)} in {inside.name}" if inside is not None else names.phrase(noun)
            yield Statement("is_looking_for", concept(name), explicit=True)
