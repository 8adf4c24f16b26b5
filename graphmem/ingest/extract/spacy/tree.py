"""Small questions to a dependency parse: the objects and prepositions of a verb."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spacy.tokens import Token


def objects_of(verb: Token, *deps: str) -> list[Token]:
    """Return the children of a verb with these dependencies."""
    return [c for c in verb.children if c.dep_ in deps]


def prepositions(token: Token) -> Iterator[tuple[str, Token]]:
    """Yield (preposition, head of its noun phrase) of a verb or noun, also of "out of", "over to"."""
    for child in token.children:
        if any(c.dep_ == "neg" for c in child.children):
            continue  # "in Bern, not in Berlin"
        if child.dep_ in ("prep", "agent", "dative") and child.pos_ in ("ADP", "SCONJ", "PART"):
            for noun in child.children:
                if noun.dep_ == "pobj":
                    yield child.lower_, noun
            for inner in child.children:
                if inner.dep_ == "prep":
                    yield from ((inner.lower_, n) for n in inner.children if n.dep_ == "pobj")


def joins_verb(token: Token) -> bool:
    """Tell whether a noun is listed with verbs: "watch movies, hike, and play chess" has one object, no list."""
    return any(c.pos_ == "VERB" and c.i > token.i for c in token.conjuncts)


def governor(token: Token) -> Token:
    """Return the verb that a word belongs to."""
    while token.dep_ != "ROOT" and token.pos_ not in ("VERB", "AUX"):
        token = token.head
    return token
