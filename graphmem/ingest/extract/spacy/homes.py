"""Rules for `lives_in`: current, former and future homes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.clauses import Clause
from graphmem.ingest.extract.spacy.names import End, Names
from graphmem.ingest.extract.spacy.relations import Statement, is_state
from graphmem.ingest.extract.spacy.tree import objects_of, prepositions
from graphmem.ingest.extract.spacy.when import Period

if TYPE_CHECKING:
    from spacy.tokens import Token

_PLACES = ("GPE", "LOC")


def places(noun: Token, names: Names) -> Iterator[End]:
    """Yield a noun phrase as a place, if the entity recognizer labels it as one."""
    yield from (e for e in names.end(noun) if e.label in _PLACES)


def homes(clause: Clause, names: Names, period: Period) -> Iterator[Statement]:
    """Yield facts of "lives in Berlin", "moved from Rome to Berlin" (ends Rome), "is moving to Berlin in May"."""
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    if lemma == "base" and clause.passive:
        lemma = "live"
    lives = lemma in ("live", "reside") and (is_state(clause) or clause.ended or clause.began) and not clause.stance
    moves = lemma in words.MOVING and (clause.past or period.ahead) and not objects_of(verb, "dobj")
    settles = lemma == "settle" and clause.past
    ways = list(_ways(verb))
    if lives:  # "in a small house in Denver", "with Ida in Denver"
        ways += [(w, inner) for _, noun in ways for w, inner in prepositions(noun) if w == "in"]
    for word, noun in ways:
        if (lives and word in ("in", "at", "of")) or (settles and word == "in"):
            yield from (Statement("lives_in", t, explicit=True) for t in _towns(noun, names, sure=not settles))
        elif moves and word == "to":
            towns = list(_towns(noun, names, sure=False)) or list(_unknown_town(clause, noun, names))
            yield from (Statement("lives_in", t, explicit=True) for t in towns)
        elif moves and word in ("from", "of"):
            known = list(places(noun, names))
            yield from (Statement("lives_in", t, ended=True, explicit=True) for t in known)
            unknown = () if known else _unknown_town(clause, noun, names)
            yield from (Statement("lives_in", t, ended=True, explicit=True, presumed=True) for t in unknown)


def canceled_moves(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield the end of a planned home for "we're not moving to Oslo after all"."""
    verb = clause.verb
    if verb.lemma_.lower() in words.MOVING and clause.negated and not clause.past:
        nouns = [noun for word, noun in _ways(verb) if word == "to"]
        ends = [t for n in nouns for t in (*_towns(n, names, sure=False), *_unknown_town(clause, n, names))]
        for relation in ("lives_in", "plans_to_move_to"):
            yield from (Statement(relation, t, ended=True, explicit=True, presumed=True) for t in ends)


def _ways(verb: Token) -> Iterator[tuple[str, Token]]:
    """Yield the prepositions of a verb, including those of "back to", "over to", "away from"."""
    yield from prepositions(verb)
    for child in verb.children:
        if child.dep_ in ("advmod", "prt") and child.lower_ in ("back", "over", "down", "up", "out", "away", "here"):
            yield from prepositions(child)


def _towns(noun: Token, names: Names, *, sure: bool) -> Iterator[End]:
    """Yield a place to live in; names of any kind if the verb implies a place."""
    for end in names.end(noun):
        if end.role:
            continue
        capital = noun.pos_ == "PROPN" and noun.text[:1].isupper() and end.named
        if end.label in _PLACES:
            yield end
        elif capital and end.label == "PERSON" and not any(c.dep_ == "case" for c in noun.children):
            yield End(end.name, "location", named=True, certainty=min(end.certainty, 0.7), label="GPE")
        elif sure and capital and end.label in ("", "ORG", "FAC", "NORP"):
            yield End(end.name, "location", named=True, certainty=end.certainty, label="GPE")
        elif _is_small_name(noun, sure=sure):
            yield End(end.name.title(), "location", named=True, certainty=min(end.certainty, 0.6), label="GPE")


def _unknown_town(clause: Clause, noun: Token, names: Names) -> Iterator[End]:
    """Yield a name that the recognizer doesn't know as a place, where a person moved to it.

    "We moved to Postgres" and "I moved to Google" are excluded by their form or by a list.
    """
    person = any(t.lower_ == "i" or t.ent_type_ == "PERSON" or t.lemma_.lower() in words.KIN for t in clause.subjects)
    family = any(t.lower_ == "we" for t in clause.subjects) and noun.ent_type_ == "GPE"
    plain = noun.text.istitle() and not any(c.dep_ in ("det", "poss", "compound", "case") for c in noun.children)
    if (person or family) and noun.pos_ == "PROPN" and plain and noun.lower_ not in words.NO_TOWNS:
        for end in names.end(noun):
            if end.named and not end.role:
                yield End(end.name, "location", named=True, certainty=min(end.certainty, 0.7), label="GPE")


def _is_small_name(noun: Token, *, sure: bool) -> bool:
    """Return whether a word of a message without capitals can be a town.

    A dwelling has an article ("in a flat"); states of mind don't and are excluded by a word list.
    """
    tagged = noun.tag_ == "NNP" or (sure and noun.tag_ == "NN" and noun.lower_ not in words.LIVED_IN)
    if not tagged or any(noun.children):
        return False
    return noun.doc.text.islower() or not any(t.text[:1].isupper() for t in noun.doc if t.text != "I")
