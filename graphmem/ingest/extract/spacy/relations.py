"""Relation names derived from the verbs of clauses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.clauses import Clause
from graphmem.ingest.extract.spacy.names import End

if TYPE_CHECKING:
    from spacy.tokens import Token


@dataclass(frozen=True, slots=True)
class Statement:
    """Relation from the subject of a clause to a target, converted to an edge by `Facts`.

    A `presumed` ending is of a fact that may not be known: "sold the car" ends "drives".
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
        or (clause.ongoing and (lemma in words.STATES or clause.verb.tag_ == "VBG"))
    )
