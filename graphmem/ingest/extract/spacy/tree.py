"""Helpers for dependency parses: objects and prepositions of verbs, names and governors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words

if TYPE_CHECKING:
    from spacy.tokens import Token


def objects_of(verb: Token, *deps: str) -> list[Token]:
    """Return the children of a verb with these dependencies."""
    return [c for c in verb.children if c.dep_ in deps]


def prepositions(token: Token) -> Iterator[tuple[str, Token]]:
    """Yield (preposition, head of its noun phrase) of a verb or noun, including "out of", "over to"."""
    for child in token.children:
        if _is_instead(child) or any(c.dep_ == "neg" for c in child.children):
            continue  # "in Bern, not in Berlin", "uses vim instead of nano"
        if child.dep_ in ("prep", "agent", "dative") and child.pos_ in ("ADP", "SCONJ", "PART"):
            for noun in child.children:
                if noun.dep_ == "pobj":
                    yield child.lower_, noun
            for inner in child.children:
                if inner.dep_ == "prep":
                    yield from ((inner.lower_, n) for n in inner.children if n.dep_ == "pobj")


def not_but(verb: Token) -> list[Token]:
    """Return the replaced objects of a verb: "nano" in "uses vim instead of nano"."""
    return [noun for c in verb.children if _is_instead(c) for noun in objects_of(c, "pobj")]


def _is_instead(token: Token) -> bool:
    """Return whether a word is the "of" in "instead of"."""
    return token.lower_ == "of" and any(c.lower_ == "instead" for c in token.children)


def is_named(noun: Token) -> bool:
    """Return whether a relative is given a name: "my boss is Anna Holm", "my dog is called Rex"."""
    if noun.dep_ not in ("nsubj", "nsubjpass") or noun.tag_ != "NN" or noun.lower_ not in words.RELATIONAL:
        return False
    if any(c.dep_ in ("appos", "compound") and c.pos_ == "PROPN" for c in noun.children):
        return False  # "my sister, Ida, was named captain"
    name = {"be": "attr", "call": "oprd", "name": "oprd"}.get(noun.head.lemma_)
    named = [c for c in noun.head.children if c.dep_ == name and c.pos_ == "PROPN"]
    return any(not any(c.dep_ in ("det", "poss") for c in t.children) for t in named)


def introduced(noun: Token) -> list[Token]:
    """Return the names of relatives or pets, for a list the first: Mia in "two kids, Mia and Leo"."""
    if noun.lemma_.lower() not in words.RELATIONAL:
        return []
    return [c for c in noun.children if c.dep_ == "appos" and c.pos_ == "PROPN"]


def joins_verb(token: Token) -> bool:
    """Return whether a noun is coordinated with verbs: "watch movies, hike, and play chess" has one object."""
    return any(c.pos_ == "VERB" and c.i > token.i for c in token.conjuncts)


def dated(token: Token) -> Token:
    """Return the verb of a date: not "married" in "got married", nor "called" in "a cat called Vespa"."""
    verb = governor(token)
    while _is_part(verb):
        verb = governor(verb.head)
    return verb


def _is_part(verb: Token) -> bool:
    if verb.dep_ == "ROOT":
        return False
    naming = verb.dep_ == "acl" and verb.lemma_ in ("call", "name")
    letting = verb.dep_ in ("xcomp", "ccomp") and verb.lower_ == "go" and verb.head.lemma_ == "let"
    return naming or letting or verb.dep_ in ("acomp", "oprd")


def governor(token: Token) -> Token:
    """Return the verb that governs a word."""
    while token.dep_ != "ROOT" and token.pos_ not in ("VERB", "AUX"):
        token = token.head
    return token
