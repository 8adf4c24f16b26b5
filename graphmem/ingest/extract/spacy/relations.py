"""How the verb of a clause becomes the name of a relation."""

from __future__ import annotations

from dataclasses import dataclass

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.clauses import Clause
from graphmem.ingest.extract.spacy.names import End


@dataclass(frozen=True, slots=True)
class Statement:
    """A relation of a clause's subject to something: what `Facts` turns into an edge."""

    relation: str
    target: End
    ended: bool = False
    explicit: bool = False
    source: End | None = None
    fact: str = ""
    timeless: bool = False


def verb_form(clause: Clause) -> str:
    """Return the verb with its particle as the relation says it: "loves", "went", "gave_up", "wants_to_adopt"."""
    verb = clause.verb
    lemma = verb.lemma_.lower()
    particle = next((f"_{c.lower_}" for c in verb.children if c.dep_ == "prt"), "")
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


def is_state(clause: Clause) -> bool:
    """Tell whether a clause says what is so, rather than what happened."""
    lemma = clause.verb.lemma_.lower()
    return (
        not clause.past
        or lemma in words.STRONG_STATES
        or (clause.ongoing and (lemma in words.STATES or clause.verb.tag_ == "VBG"))
    )
