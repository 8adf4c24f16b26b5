"""Rules for what ends: plans, tastes, habits, possessions, people who left or died."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.clauses import Clause, is_death, objects_of, prepositions
from graphmem.ingest.extract.spacy.homes_and_jobs import is_outing, jobless
from graphmem.ingest.extract.spacy.names import End, Names
from graphmem.ingest.extract.spacy.statements import Period, Statement, presumed_end, verb_form

if TYPE_CHECKING:
    from spacy.tokens import Token


def endings(clause: Clause, subject: End, names: Names, period: Period) -> Iterator[Statement]:
    """Yield the endings that a clause implies: "Rex died", "Anna left the company", "she took me off aspirin"."""
    yield from _death(clause, subject, names)
    yield from _moved_out(clause, subject, names)
    yield from _departure(clause, subject, names, period)
    yield from cancellation(clause, names)
    yield from _parting(clause, subject, names)
    yield from _graduation(clause)
    yield from _taken_off(clause, subject, names)
    yield from _replaced_traits(clause)


def _death(clause: Clause, subject: End, names: Names) -> Iterator[Statement]:
    """Yield the end of pets and partnerships for "Rex died", "my dog Rex passed away"."""
    alive = not any(t.lemma_ in words.OWNED - words.PETS for t in clause.subjects)  # not "my phone died"
    dead = [subject] if alive and is_death(clause.verb) and not objects_of(clause.verb, "dobj") else []
    if any(c.lower_ == "down" for c in clause.verb.children) and clause.verb.lemma_ == "put" and not clause.passive:
        dead = [e for t in objects_of(clause.verb, "dobj") if t.pos_ == "PROPN" for e in names.end(t)]
    for end in dead if clause.past or len(clause.chain) > 1 else ():
        if end.named and not end.role and end.label not in ("NORP", "ORG", *words.PLACES):
            yield Statement("has_status", End("deceased", "concept", named=False), explicit=True, source=end)
        known = end.named or (end is subject and any(t.pos_ == "PROPN" for t in clause.subjects))
        if known and not end.role and names.speaker is not None:
            for relation in (*words.PET_RELATIONS, "married_to", "has_partner"):
                yield presumed_end(relation, end, names.speaker)


def _moved_out(clause: Clause, subject: End, names: Names) -> Iterator[Statement]:
    """Yield the end of the speaker's living with somebody for "Tom moved out"."""
    for word, noun in prepositions(clause.verb):  # "out of my parents' place"
        if word == "of" and clause.verb.lemma_ == "move" and clause.past and not noun.ent_type_:
            hosts = (e for c in noun.children if c.dep_ == "poss" for e in names.end(c) if e.role != "speaker")
            yield from (presumed_end("lives_with", host) for host in hosts)
    if _moves_out(clause) and names.speaker is not None and not subject.role:
        for relation in ("lives_with", *map(words.has, _LIVING_TOGETHER)):
            yield Statement(relation, subject, ended=True, source=names.speaker, presumed=True)


_LIVING_TOGETHER = ("roommate", "flatmate", "housemate")


def _moves_out(clause: Clause) -> bool:
    out = any(c.lower_ == "out" and not any(c.children) for c in clause.verb.children)
    return out and clause.past and clause.verb.lemma_ == "move"


def ended_roles(clause: Clause, names: Names, period: Period) -> Iterator[tuple[End, str]]:
    """Yield whose relation has ended with somebody who isn't named: has_manager for "my manager left the company"."""
    for noun in clause.subjects:
        role = noun.lower_
        alone = noun.tag_ == "NN" and role not in words.SEVERAL and not any(c.pos_ == "PROPN" for c in noun.children)
        owner = names.owner(noun) if alone else None
        left = role in words.AT_WORK and _left_work(clause, period)
        if owner is not None and not clause.negated and (left or (role in _LIVING_TOGETHER and _moves_out(clause))):
            yield owner, words.has(role)


def _departure(clause: Clause, subject: End, names: Names, period: Period) -> Iterator[Statement]:
    """Yield the end of working together for "Anna left the company", "my boss Anna quit"."""
    known = subject.named or any(t.pos_ == "PROPN" for t in clause.subjects)
    family = words.KIN.keys() - words.AT_WORK
    if any(t.lemma_.lower() in family for t in clause.subjects):
        return  # "Dad retired"
    if _left_work(clause, period) and known and not subject.role and names.speaker is not None:
        for noun in sorted(words.AT_WORK):
            yield presumed_end(words.has(noun), subject, names.speaker)


def _left_work(clause: Clause, period: Period) -> bool:
    firm = any(t.lower_ in words.LEAVABLE and _definite(t) for t in objects_of(clause.verb, "dobj"))
    lemma, bare = clause.verb.lemma_, all(c.dep_ in ("nsubj", "punct", "npadvmod") for c in clause.verb.children)
    left = (
        lemma in ("leave", "quit")
        and clause.past
        and not clause.passive
        and not is_outing(clause.verb)
        and (firm or (bare and lemma == "quit") or _left_for_good(clause))
    )
    return left or jobless(clause, period)


def _left_for_good(clause: Clause) -> bool:
    """Return whether somebody at work left for good: "my manager Sandra left and now I report to Tom"."""
    others = [c for c in clause.verb.children if c.dep_ not in ("nsubj", "aux", "cc", "punct")]
    follows = all(c.dep_ == "conj" and any(t.lower_ == "now" for t in c.children) for c in others)
    return follows and any(t.lemma_.lower() in words.AT_WORK for t in clause.subjects)


def _definite(noun: Token) -> bool:
    """Return whether "the company" is the one that is known."""
    return [c.lower_ for c in noun.children if c.dep_ in ("det", "poss", "amod", "compound")] in (["the"], ["our"])


def cancellation(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield the end of plans for "the trip to Paris is canceled", "I canceled my dentist appointment"."""
    verb = clause.verb
    if verb.lemma_ in ("cancel", "call") and (verb.lemma_ == "cancel" or any(c.lower_ == "off" for c in verb.children)):
        nouns = clause.subjects if clause.passive else objects_of(verb, "dobj")
    else:
        off = any(t.lower_ in ("cancelled", "canceled", "off") for t in objects_of(verb, "acomp", "prep", "advmod"))
        nouns = clause.subjects if verb.lemma_ == "be" and off else ()
    if verb.lemma_ == "fall" and any(c.lower_ == "through" for c in verb.children):
        nouns = clause.subjects
    if names.speaker is None or not (clause.past or clause.passive or verb.lemma_ == "be"):
        return
    for noun in nouns:
        planned = (*words.PLANNED, "lives_in") if noun.lower_ == "move" else words.PLANNED
        ways = (*prepositions(noun), *(prepositions(verb) if nouns != clause.subjects else ()))
        places = [e for word, place in ways if word == "to" for e in names.end(place) if e.named]
        events = list(names.end(noun)) if noun.lower_ in words.OCCASIONS else []
        for relations, ends in ((planned, places), (words.PLANNED_EVENTS, events)):
            for end in (e for e in ends if not e.role):
                yield from (presumed_end(relation, end, names.speaker) for relation in relations)


def _graduation(clause: Clause) -> Iterator[Statement]:
    """Yield the end of being a student for "I graduated"."""
    if clause.verb.lemma_ == "graduate" and clause.past and not clause.passive:
        yield presumed_end("is_a", End("student", "concept", named=False))


def _parting(clause: Clause, subject: End, names: Names) -> Iterator[Statement]:
    """Yield the end of a partnership for "Sam dumped me"."""
    if clause.verb.lemma_ == "dump" and clause.past and subject.kind == "person":
        for end in (e for t in objects_of(clause.verb, "dobj") for e in names.end(t) if e.kind == "person"):
            yield from (presumed_end(relation, end) for relation in ("has_partner", "is_engaged_to"))
            yield from (presumed_end(relation, subject, end) for relation in ("has_partner", "is_engaged_to"))


def _taken_off(clause: Clause, subject: End, names: Names) -> Iterator[Statement]:
    """Yield the end of taking a medicine for "I came off aspirin", "the doctor took me off aspirin"."""
    verb = clause.verb
    if verb.lemma_ not in ("take", "come", "go", "get") or not clause.past or clause.stance:
        return
    patients = [e for t in objects_of(verb, "dobj") for e in names.end(t) if e.kind == "person"]
    if verb.lemma_ == "take" and not patients:
        return
    for noun in (n for word, n in prepositions(verb) if word == "off"):
        for end in (e for e in names.ends(noun) if not e.role):
            yield from (presumed_end("takes", end, patient) for patient in patients or [subject])


def _replaced_traits(clause: Clause) -> Iterator[Statement]:
    """Yield the end of the other diets for "I'm vegan now", of all of them for "I eat meat again"."""
    verb = clause.verb
    if clause.stance or clause.negated or clause.ended:
        return
    said = {t.lower_ for t in objects_of(verb, "attr", "acomp", "dobj", "oprd")}
    meat = verb.lemma_ in ("eat", "have") and not clause.past and bool(said & words.MEATS)
    changes = verb.lemma_ in ("go", "become", "turn") or (verb.lemma_ == "be" and not clause.past)
    if meat or (changes and said & words.DIETS):
        yield from (presumed_end("is", End(other, "concept", named=False)) for other in sorted(words.DIETS - said))


def changed_tastes(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield the end of the opposite taste: "hates mushrooms" for "I like mushrooms", and the reverse."""
    lemma = clause.verb.lemma_.lower()
    if clause.stance or clause.past or clause.ended or lemma not in words.LIKING | {"stand", "bear"}:
        return
    positive = lemma in words.POSITIVE and not clause.negated
    if not positive and lemma == "prefer":
        return
    opposite = ["does_not_like", "does_not_love", "does_not_enjoy", "hates", "dislikes"]
    opposite = opposite if positive else [words.third_person(verb) for verb in sorted(words.POSITIVE)]
    for end in (e for t in objects_of(clause.verb, "dobj") for e in names.ends(t) if not e.role):
        yield from (presumed_end(relation, end) for relation in opposite)


def given_up(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield endings such as "gave up tennis", "sold the Tesla", "left the chess club", "no longer like jazz"."""
    if clause.ended and clause.verb.lemma_ in words.POSITIVE:
        liked = [e for t in objects_of(clause.verb, "dobj") for e in names.ends(t)]
        for other in sorted(words.POSITIVE - {clause.verb.lemma_}):
            relation = words.third_person(other)
            yield from (Statement(relation, e, ended=True, presumed=True) for e in liked)
    if not clause.past or clause.passive or clause.stance or clause.negated:
        return
    lemma = clause.verb.lemma_.lower()
    particle = next((f"_{c.lower_}" for c in clause.verb.children if c.dep_ == "prt" or c.lower_ == "away"), "")
    pets = words.PET_RELATIONS if f"{lemma}{particle}" in ("give_away", "rehome") else ()
    on = [c for c in clause.verb.children if f"{lemma}{particle}_{c.lower_}" == "give_up_on"]
    gerunds = (c for word in on for c in word.children if c.dep_ == "pcomp")
    given_up_on = [t for head in (*on, *gerunds) for t in objects_of(head, "pobj", "dobj")]
    for token in (*objects_of(clause.verb, "dobj"), *given_up_on):
        group = "_group" if token.lower_ in words.GROUPS else ""
        definite = token.pos_ == "PROPN" or any(c.lower_ in words.DEFINITE for c in token.children)
        for relation in (*words.ENDS.get(f"{lemma}{particle}{group}", ()), *pets):
            if definite or lemma in words.ENDING_ANY:
                yield from (Statement(relation, e, ended=True, presumed=True) for e in names.ends(token) if not e.role)


def fulfilled(clause: Clause, events: Iterable[Statement]) -> Iterator[Statement]:
    """Yield the end of "wants to visit Peru" for "I visited Peru"."""
    lemma, form = clause.verb.lemma_.lower(), verb_form(clause)
    if lemma not in words.FULFILLING or not clause.past or clause.passive or clause.stance or clause.ended:
        return
    for event in events:
        if event.relation.startswith(form) and event.target.named and not event.ended:
            for stance in ("plans_to", "wants_to"):
                wish = f"{stance}_{lemma}{event.relation.removeprefix(form)}"
                yield Statement(wish, event.target, ended=True, presumed=True)
