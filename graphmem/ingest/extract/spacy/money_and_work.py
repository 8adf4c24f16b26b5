"""Rules for studies and money."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.appointments import when
from graphmem.ingest.extract.spacy.clauses import Clause, objects_of, prepositions
from graphmem.ingest.extract.spacy.names import Names
from graphmem.ingest.extract.spacy.statements import Period, Statement, concept

if TYPE_CHECKING:
    from spacy.tokens import Token

_AMOUNT = re.compile(r"[$€£]?\d[\d.,]*k?", re.IGNORECASE)


def studies(clause: Clause, names: Names) -> Iterator[Statement]:
    """Yield studies for "I'm in my second year of a biology degree", "I'm doing a masters in chemistry"."""
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    if clause.past and not clause.ongoing:
        return
    if lemma == "be":
        years = [n for w, n in prepositions(verb) if w == "in" and n.lower_ in ("year", "semester", "term")]
        nouns = [n for year in years for w, n in prepositions(year) if w in ("of", "at", "in")]
        for year in years:
            if any(c.dep_ == "poss" for c in year.children) and any(n.lower_ in words.DEGREES for n in nouns):
                yield Statement("is_in", concept(names.phrase(year)), explicit=True)
    else:
        nouns = objects_of(verb, "dobj") if lemma in ("do", "study", "take", "read") else []
    for noun in (n for n in nouns if n.lower_ in words.DEGREES):
        subjects = [n for w, n in prepositions(noun) if w in ("in", "of")]
        subjects += [n for w, n in prepositions(verb) if w == "in" and lemma != "be"]
        limits = [c for c in noun.children if c.dep_ in ("compound", "amod") and c.lower_ not in words.EVALUATIVE]
        yield from (Statement("studies", e, explicit=True) for n in subjects for e in names.ends(n) if not e.role)
        if not subjects and limits:
            yield Statement("studies", concept(" ".join(t.text for t in limits)), explicit=True)


def money(clause: Clause, names: Names, *, own: bool) -> Iterator[Statement]:
    """Yield has_salary for "I earn 42k", owes_money_to for "I owe my brother 300 euros".

    The salary of who is neither the speaker nor a relative (not `own`) is rather one of an exercise in arithmetic.
    """
    verb, lemma = clause.verb, clause.verb.lemma_.lower()
    objects = objects_of(verb, "dobj", "npadvmod", "dative")
    amounts = [t for noun in objects for t in (noun, *noun.children) if t.dep_ != "poss" and _is_amount(t)]
    if own and lemma in ("earn", "make") and not clause.past and amounts and verb.tag_ in ("VBP", "VBZ"):
        paid = lemma == "earn" or any(t.lower_ in ("year", "month", "annum", "hour", "tax") for t in verb.subtree)
        yield from (Statement("has_salary", concept(_amount(t)), explicit=True) for t in amounts[:1] if paid)
    if lemma == "weigh" and not clause.past and amounts:
        weight = next(iter(objects_of(verb, "dobj", "npadvmod", "attr")))
        yield Statement("has_weight", concept(weight.doc[weight.left_edge.i : weight.i + 1].text), explicit=True)
    if lemma == "work" and not clause.past:
        shifts = (t for t in objects if t.lower_ in words.SHIFTS)
        yield from (Statement("works", concept(t.lower_), explicit=True) for t in shifts)
    if lemma == "pay" and not clause.past and any(w in ("in", "for") and n.lower_ == "rent" for w, n in _ways(verb)):
        yield from (Statement("has_rent", concept(_amount(t)), explicit=True) for t in amounts[:1])
    if lemma in words.OWING and amounts and (not clause.past or lemma != "owe"):
        whom = [e for t in objects_of(verb, "dative", "dobj") if not _is_amount(t) for e in names.end(t)]
        whom += [e for w, n in prepositions(verb) if w in ("to", "from") for e in names.end(n)]
        relation = words.OWING[lemma]
        event = lemma != "owe"
        yield from (Statement(relation, e, explicit=True, event=event) for e in whom if e.kind == "person" and e.named)


def rates(clause: Clause, names: Names, period: Period) -> Iterator[Statement]:
    """Yield has_rent and has_salary for "my rent went up to 1100", "they're putting the rent up to 1100 in April"."""
    verb = clause.verb
    nouns = [t for t in (*clause.subjects, *objects_of(verb, "dobj")) if t.lower_ in ("rent", "salary", "wage")]
    if verb.lemma_ not in ("go", "rise", "increase", "raise", "put", "drop") or clause.stance not in ("", "plans_to"):
        return
    for noun in nouns:
        ours = {c.lower_ for c in noun.children if c.dep_ in ("det", "poss", "compound", "amod")} <= {"the"}
        owner = names.owner(noun) or (names.speaker if ours else None)
        if owner is None:
            continue
        after = [n for head in (verb, *verb.children) for w, n in prepositions(head) if w == "to" and _is_amount(n)]
        for amount in after[:1]:
            relation = "has_rent" if noun.lower_ == "rent" else "has_salary"
            tense = "was raised" if clause.past else "is raised"
            fact = f"{owner.name}'s {noun.lower_} {tense} to {_amount(amount)}{when(period)}."
            end = concept(_amount(amount))
            yield Statement(relation, end, explicit=True, source=owner, fact=fact, planned=not clause.past)


def _ways(verb: Token) -> Iterator[tuple[str, Token]]:
    """Yield the prepositions of a verb and of its objects."""
    yield from prepositions(verb)
    for noun in objects_of(verb, "dobj", "npadvmod"):
        yield from prepositions(noun)


def _is_amount(noun: Token) -> bool:
    is_money = noun.ent_type_ == "MONEY" or noun.lower_ in words.CURRENCIES
    return is_money or bool(_AMOUNT.fullmatch(noun.text))


def _amount(noun: Token) -> str:
    return noun.doc[noun.left_edge.i : noun.i + 1].text.strip()
