"""Mends part-of-speech tags that small models get wrong, before anything reads them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.clauses import SUBJECTS, helpers
from graphmem.ingest.extract.spacy.render import Dates
from graphmem.ingest.extract.spacy.tree import dated

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token


def mend_tags(doc: Doc, dates: Dates, reference: datetime) -> None:
    """Retag in place: the past of "I quit in August", the present of "I no longer use".

    Parameters
    ----------
    doc
        The parse.
    dates
        Its dates by token, each read as the last one of its name.
    reference
        When it was said.
    """
    for token in doc:
        if _joins_present(token):
            token.tag_, token.pos_ = "VBP", "VERB"
        if not any(c.dep_ in SUBJECTS and c.i < token.i for c in token.children) or helpers(token):
            continue
        if token.tag_ == "VBP" and token.lower_ in words.SAME_PAST and _was(token, dates, reference):
            token.tag_ = "VBD"
        elif token.tag_ in ("VB", "IN") and any(c.lower_ == "longer" for c in token.children):
            token.tag_, token.pos_ = "VBP", "VERB"


def _joins_present(token: Token) -> bool:
    """Tell whether a word that is tagged as a noun is the second verb of "I live in Oslo and work at Acme"."""
    first = token.head
    bare = token.tag_ == "NN" and not any(c.i < token.i for c in token.children)
    return bare and token.dep_ == "conj" and first.tag_ == "VBP" and any(c.dep_ == "prep" for c in token.children)


def _was(verb: Token, dates: Dates, reference: datetime) -> bool:
    """Tell whether "cut" or "quit" is the past: with a date that is over; "quit" unless one is ahead."""
    if any(c.lower_ in words.HABITUAL for c in verb.subtree):
        return False
    named = [d for t in verb.sent if (d := dates.at.get(t.i)) is not None and dated(t) == verb]
    if verb.lower_ == "quit":
        return all(d.begin <= reference for d in named)
    return any(d.until <= reference for d in named)
