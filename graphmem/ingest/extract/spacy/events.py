"""Rules for what happens to people, to their pets and to their things: "was fired", "Nora's car was stolen"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.appointments import when
from graphmem.ingest.extract.spacy.clauses import Clause, helpers, objects_of, prepositions
from graphmem.ingest.extract.spacy.names import End, Names
from graphmem.ingest.extract.spacy.statements import Period, Statement, concept, presumed_end, thing_of

if TYPE_CHECKING:
    from spacy.tokens import Token

_AGE = re.compile(r"\d{1,3}")
_OLDEST = 120
_PARTICLES = ("into", "off", "up", "over", "out")


def events(clause: Clause) -> Iterator[Statement]:
    """Yield what happened to somebody or something, as a participle: "was fired", "got spayed", "retired"."""
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    if not clause.past or clause.stance:
        return
    particle = next((f" {c.lower_}" for c in verb.children if c.lower_ in _PARTICLES), "")
    said = next((w for w in (f"{verb.lower_}{particle}", verb.lower_) if w in words.BEFALLEN), None)
    got = clause.passive and any(h.lower_ in (*words.GETS, "been", "was", "were") for h in helpers(verb))
    limited = objects_of(verb, "oprd") or any(w in ("to", "with", "from") for w, _ in prepositions(verb))
    limited = limited or (lemma == "rob" and any(w == "by" for w, _ in prepositions(verb)))  # "by the referee"
    redundant = lemma == "make" and any(t.lower_ == "redundant" for t in verb.children)
    if redundant and clause.passive:
        yield Statement("was", concept("made redundant"), explicit=True, event=True)
    if said is not None and got and not limited:
        yield Statement("was", concept(said), explicit=True, event=True)
    elif lemma in words.TOLD and not clause.passive:  # "I broke my arm playing football"
        doing = (c for c in verb.children if c.dep_ in ("advcl", "ccomp") and c.tag_ == "VBG")
        parts = (t for c in doing for t in objects_of(c, "nsubj") if t.lower_ in words.TOLD[lemma])
        relation = words.past(lemma, verb.text, verb.tag_)
        yield from (Statement(relation, concept(t.lower_), explicit=True, event=True) for t in parts)
    if lemma == "be":
        inside = (n for w, n in prepositions(verb) if w == "in" and n.lower_ in words.INSTITUTIONS)
        yield from (Statement("was_in", concept(n.lower_), explicit=True, event=True) for n in inside)
    if lemma == "retire" and not clause.passive and not any(n.lower_ == "bed" for _, n in prepositions(verb)):
        yield Statement("is", concept("retired"), explicit=True)
    elif lemma == "graduate" and not clause.passive and all(n.ent_type_ for _, n in prepositions(verb)):
        named = any(n.ent_type_ not in words.QUANTITIES for _, n in prepositions(verb))
        yield from () if named else [Statement("is_a", concept("graduate"), explicit=True)]
    elif lemma in ("quit", "lose", "leave") and any(t.lower_ == "job" for t in objects_of(verb, "dobj")):
        job = next(t for t in objects_of(verb, "dobj") if t.lower_ == "job")
        named = any(n.ent_type_ not in words.QUANTITIES for _, n in prepositions(verb))
        if {c.lower_ for c in job.children} == {"my"} and not named:
            yield Statement(words.past(lemma, verb.text, verb.tag_), concept("job"), explicit=True, event=True)


def suffered(clause: Clause, names: Names, period: Period) -> Iterator[Statement]:
    """Yield what others did to somebody or something: "they fired me", "someone stole my bike", "had it stolen"."""
    verb = clause.verb
    if not clause.past or clause.passive or clause.stance:
        return
    done, nouns = _participle(verb), objects_of(verb, "dobj", "dative")
    if verb.lemma_ == "have":
        parts = [c for t in (verb, *nouns) for c in t.children if c.lower_ in words.BEFALLEN]
        done = parts[0].lower_ if parts else ""
        nouns = [t for c in parts for t in (*objects_of(c, "nsubj", "nsubjpass"), c.head) if t.pos_ == "NOUN"]
    elif verb.lemma_ == "make" and any(t.lower_ == "redundant" for t in verb.subtree):
        done, nouns = "made redundant", [*nouns, *(t for c in verb.children for t in objects_of(c, "nsubj"))]
    elif done not in words.BEFALLEN or any(t.lower_ in words.FIRST_PERSON for t in clause.subjects):
        return
    for noun in nouns if done else ():
        things = [*owned(noun, names)] or [e for e in names.ends(noun) if e.kind == "person"]
        for end in things:
            fact = f"{end.name} was {done}{when(period)}."
            yield Statement("was", concept(done), explicit=True, source=end, event=True, fact=fact)


def _participle(verb: Token) -> str:
    """Return the participle of a verb in the past with its particle: "stolen" for "stole", "laid off"."""
    form = words.PARTICIPLES.get(verb.lemma_, words.past(verb.lemma_.lower(), verb.text, verb.tag_))
    return f"{form}{next((f' {c.lower_}' for c in verb.children if c.lower_ in _PARTICLES), '')}"


def owned(noun: Token, names: Names) -> Iterator[End]:
    """Yield a thing of somebody: "Nora's car" for "my car"."""
    after = noun.doc[noun.i + 1 : noun.i + 2]
    inside = after.text.istitle() and after[0].ent_type_ not in words.QUANTITIES  # "my cars Catalytic converter"
    if noun.pos_ != "NOUN" or inside or not noun.is_lower or noun.lemma_ not in words.OWNED - words.PETS:
        return
    if (owner := names.owner(noun)) is not None and owner.named:
        yield replace(thing_of(owner, noun, names), certainty=owner.certainty)


def ages(clause: Clause, period: Period) -> Iterator[Statement]:
    """Yield the age that somebody will have: "my mum turns 70 in May"."""
    if clause.verb.lemma_ == "turn" and period.ahead:
        for noun in objects_of(clause.verb, "dobj", "attr", "acomp", "npadvmod"):
            if _AGE.fullmatch(noun.text) and int(noun.text) <= _OLDEST:
                yield Statement("has_age", concept(f"{noun.text} years"), explicit=True, planned=True)


def expected(clause: Clause, period: Period) -> Iterator[Statement]:
    """Yield the child that somebody expects: "we're expecting our first in August"."""
    verb = clause.verb
    due = verb.lemma_ == "be" and any(t.lower_ == "due" for t in objects_of(verb, "acomp")) and period.ahead
    if due and not clause.past:
        yield Statement("is_expecting", concept("baby"), explicit=True, planned=True)
    if verb.lower_ not in ("expecting", "having") or clause.past:
        return
    nouns = objects_of(verb, "dobj")
    child = next((t for t in nouns if t.lower_ in words.BORN), None)
    first = next((t for t in nouns if t.lower_ in ("first", "second", "third", "fourth")), None)
    if verb.lower_ == "having":
        child, first = (child if period.ahead else None), None
    if child is not None:
        yield Statement("is_expecting", concept(child.lower_), explicit=True, planned=period.ahead)
    elif first is not None and verb.lower_ == "expecting":
        yield Statement("is_expecting", concept("baby"), explicit=True, planned=period.ahead)


def schools(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield got_into for "I got into Imperial", dropped_out_of for "dropped out of uni"."""
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    if not clause.past or lemma not in ("get", "drop", "accept"):
        return
    out = any(c.lower_ == "out" for c in verb.children)
    for word, noun in prepositions(verb):
        learning = noun.lower_ in words.SCHOOLS
        if lemma == "drop" and out and word == "of" and (learning or noun.pos_ == "PROPN"):
            for end in [*names.end(noun)] or [concept(noun.lower_)]:
                yield Statement("dropped_out_of", end, explicit=True, event=True)
                yield from (presumed_end(relation, end) for relation in ("studies_at", "goes_to", "attends"))
        elif word in ("into", "to", "by") and (lemma == "accept" or (lemma == "get" and word == "into")):
            named = noun.pos_ == "PROPN" and noun.ent_type_ not in ("PERSON", *words.QUANTITIES)
            for end in names.word(noun) if named else [concept(noun.lower_)] if learning else []:
                yield Statement("got_into", end, explicit=True, event=True)


def abstinence(clause: Clause) -> Iterator[Statement]:
    """Yield quit for "I haven't smoked since January"."""
    since = any(t.lower_ == "since" for t in clause.verb.subtree)
    if clause.ongoing and since and clause.verb.lemma_ in words.VICES and not objects_of(clause.verb, "dobj"):
        vice = concept(words.VICES[clause.verb.lemma_])
        yield Statement("quit", vice, explicit=True)
        yield presumed_end("does", vice)
