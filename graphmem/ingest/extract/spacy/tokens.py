"""Tokens as the parser is given them, so that it reads relatives and their names.

The models know few given names: of "my friend Ines lives in Porto" they make a product. They also split "ex-wife".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Token

_KNOWN_NAME = "peter"  # which the models always read as the name of a person after "my friend"
_COMPOUND = re.compile(
    rf"\b(?:{'|'.join(words.KIN_PREFIXES)})?(?P<kin>[a-zé]{{3,14}})(?:-in-law| in law)?(?![\w-])", re.IGNORECASE
)
_HYPHENATED = re.compile(r"\b[a-z]{2,12}(?:-[a-z]{2,12}){1,2}(?= (?P<kin>[a-zé]{3,14})\b)")  # "next-door neighbor"
FIRM = re.compile(
    r"\b(?:[A-Z][\w'’-]* & (?:Sons?|Daughters?|Co|Company|Partners|Associates|Bros|Brothers)\b"
    r"|(?<=\bat )[A-Z][\w'’-]* & [A-Z][\w’-]*(?!['’]s?\b))"
)
"""Names of two parts that are one firm: "Dwyer & Sons", "at Marks & Spencer"."""

_KNOWN_FIRM = "google"  # which the models always read as the name of an organization
_LONGEST = 6


def parsed(pipeline: Language, text: str) -> Doc:
    """Return the parse of a text."""
    return pipeline(tokens(pipeline, text))


def tokens(pipeline: Language, text: str) -> Doc:
    """Return the tokens of a text: "brother-in-law" and "Dwyer & Sons" as one, names of relatives as a known one."""
    doc = pipeline.make_doc(text)
    found = [(m.span(), m["kin"].lower()) for m in _COMPOUND.finditer(text) if m[0].lower() in words.KIN]
    found += [(m.span(), "old") for m in _HYPHENATED.finditer(text) if m["kin"] in words.KIN]
    found += [(m.span(), _KNOWN_FIRM) for m in FIRM.finditer(text)]
    merged: set[int] = set()
    with doc.retokenize() as retokenizer:
        for place, norm in found:
            span = doc.char_span(*place)
            if span is None or len(span) < 2 or not merged.isdisjoint(range(span.start, span.end)):
                continue
            merged.update(range(span.start, span.end))
            retokenizer.merge(span, attrs={"NORM": norm})
    names = {name.text for _, name in relatives_names(doc)}
    for token in doc if names else ():
        if token.text in names:
            token.norm_ = _KNOWN_NAME
    return doc


def relatives_names(doc: Doc, nouns: Collection[str] = words.KIN) -> Iterator[tuple[Token, Token]]:
    """Yield the nouns of relatives with the first words of their names: sister, Ines of "my sister Ines Costa"."""
    for noun, name in pairwise(doc):
        if noun.lower_ in nouns and is_name_of(name, noun):
            yield noun, name


def mend_relatives(doc: Doc) -> None:
    """Join in place the names of relatives to their nouns, where the parser makes both subjects of the verb."""
    for noun, name in relatives_names(doc):
        while name.dep_ == "compound" and name.head.i == name.i + 1 and name.head.pos_ == "PROPN":
            name = name.head
        if name.head == noun.head and name != noun.head:
            name.head, name.dep_, name.tag_, name.pos_ = noun, "appos", "NNP", "PROPN"
        elif noun.dep_ == "conj" and name.dep_ == "nsubj" and name.i == noun.i + 1:
            noun.head, noun.dep_ = name.head, "nsubj"  # "I'm a nurse and my husband Tom works here"
            name.head, name.dep_ = noun, "appos"
    for noun, name in relatives_names(doc, words.PETS):
        if noun.dep_ == "compound" and noun.head == name and name.dep_ != "ROOT":  # "our dog Biscuit"
            noun.head, noun.dep_ = name.head, name.dep_
            for child in [c for c in name.children if c.i < noun.i]:
                child.head = noun
            name.head, name.dep_ = noun, "appos"
        if name.head == noun and name.dep_ == "appos" and name.tag_ == "NN":
            name.tag_, name.pos_ = "NNP", "PROPN"
    for token in doc:
        subjects = [c for c in token.head.children if c.dep_ == "nsubj"] if token.dep_ == "acomp" else []
        if (
            token.tag_ == "NNP"
            and token.ent_type_ not in ("NORP", "LANGUAGE")
            and any(c.lower_ in words.RELATIONAL for c in subjects)
        ):
            token.dep_ = "attr"  # "my cat is Milo"


def mend_verbs(doc: Doc) -> None:
    """Correct in place verbs read as nouns after relatives ("Amy's boyfriend works at Siemens"), and the reverse.

    A bare verb joined to a finite one is a noun: "I'm allergic to peanuts and shellfish".
    """
    for token in doc:
        noun = token if token.lower_ in words.KIN else None
        verb = _misread_verb(token) if noun is not None else None
        if noun is not None and verb is not None:
            verb.head, verb.dep_, verb.pos_ = verb, "ROOT", "VERB"
            noun.head, noun.dep_ = verb, "nsubj"
            for child in [c for c in verb.children if c.dep_ in ("poss", "amod", "compound")]:
                child.head, child.dep_ = noun, "appos" if child.i > noun.i else child.dep_
        if _is_misread_noun(token):
            joined = [t for t in doc[token.head.i + 1 : token.i] if t.dep_ in ("pobj", "dobj")]
            if joined:
                token.head, token.tag_, token.pos_ = joined[-1], "NN", "NOUN"


def _misread_verb(noun: Token) -> Token | None:
    """Return the verb after a relative and its name that the parser reads as a noun."""
    for verb in noun.doc[noun.i + 1 : noun.i + _LONGEST]:
        if verb.tag_ in ("VBZ", "VBD"):
            misread = (noun.dep_ == "compound" and noun.head == verb) or (verb.dep_ == "appos" and verb.head == noun)
            return verb if misread and "ROOT" in (noun.dep_, verb.dep_) else None
        if not verb.text.istitle():
            return None
    return None


def _is_misread_noun(token: Token) -> bool:
    """Return whether a noun is read as a bare verb joined to "am" or another finite form of "be"."""
    bare = token.tag_ == "VB" and all(c.dep_ in ("cc", "conj", "punct") for c in token.children)
    finite = token.head.lemma_ == "be" and token.head.tag_ in ("VBP", "VBZ", "VBD")
    return bare and token.dep_ == "conj" and finite and token.nbor(-1).lower_ in (",", "and", "&")


def is_name_of(word: Token, noun: Token) -> bool:
    """Return whether a word is the name of a relative: "my sister Ines"; not in "I taught my son French"."""
    a_name = word.is_alpha and len(word) > 1 and word.text[:2].istitle() and word.lower_ not in words.CALENDAR
    if not a_name or noun.lower_ == "family":
        return False
    for owner in reversed(noun.doc[max(0, noun.i - _LONGEST) : noun.i]):
        if owner.lower_ in words.POSSESSIVES or owner.text == "'s":
            first = owner.i - (owner.text == "'s")
            before = noun.doc[first - 1] if first > 0 else None
            return before is None or not before.is_alpha or before.lower_ in words.BEFORE_RELATIVES
        if not (owner.is_lower or owner.text == "-"):
            return False
    return False
