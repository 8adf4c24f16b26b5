"""Tokens as the parser is given them, so that it reads relatives and their names.

The models know few given names: of "my friend Ines lives in Porto" they make a product. They also split "ex-wife".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.labels import KNOWN_NAME, PLAIN_NAMES, SOFTWARE_WITH_SIGNS, correct_labels

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Token

_COMPOUND = re.compile(
    rf"\b(?:{'|'.join(words.KIN_PREFIXES)})?(?P<kin>[a-zé]{{3,14}})(?:-in-law| in law)?(?![\w-])", re.IGNORECASE
)
_HYPHENATED = re.compile(r"\b[a-z]{2,12}(?:-[a-z]{2,12}){1,2}(?= (?P<kin>[a-zé]{3,14})\b)")  # "next-door neighbor"
FIRM = re.compile(
    r"\b(?:[A-Z][\w'’-]{0,60}+ & (?:Sons?|Daughters?|Co|Company|Partners|Associates|Bros|Brothers)\b"
    r"|(?<=\bat )[A-Z][\w'’-]* & [A-Z][\w’-]*(?!['’]s?\b))"
)
"""Names of two parts that are one firm: "Dwyer & Sons", "at Marks & Spencer"."""

_ANY_CASE, _EXACT = (
    "|".join(re.escape(name) for name in sorted(SOFTWARE_WITH_SIGNS) if ("-" in name) is exact)
    for exact in (False, True)
)
_SOFTWARE = re.compile(rf"(?<![\w.@#+/-])(?:(?i:{_ANY_CASE})|{_EXACT})(?![\w@#+/-]|[.]\w| m(?:aj|in)or\b)")
"""Names of software that the tokenizer splits or the models don't know: "C#", "scikit-learn"."""

_KNOWN_FIRM = "google"  # which the models always read as the name of an organization
LONGEST_PHRASE = 6
"""Words between a relative and its owner, its name or its verb, at most."""


def parsed(pipeline: Language, text: str, people: Iterable[str] = ()) -> Doc:
    """Return the parse of a text, in which the first names of these people are read as names of persons."""
    return correct_labels(pipeline(tokens(pipeline, text, people)))


def tokens(pipeline: Language, text: str, people: Iterable[str] = ()) -> Doc:
    """Return the tokens of a text: "brother-in-law" and "Dwyer & Sons" as one, names of persons as a known one."""
    doc = pipeline.make_doc(text)
    found = [(m.span(), m["kin"].lower()) for m in _COMPOUND.finditer(text) if m[0].lower() in words.KIN]
    found += [(m.span(), "old") for m in _HYPHENATED.finditer(text) if m["kin"] in words.KIN]
    found += [(m.span(), _KNOWN_FIRM) for pattern in (FIRM, _SOFTWARE) for m in pattern.finditer(text)]
    merged: set[int] = set()
    with doc.retokenize() as retokenizer:
        for place, norm in found:
            span = doc.char_span(*place)
            if span is None or not merged.isdisjoint(range(span.start, span.end)):
                continue
            merged.update(range(span.start, span.end))
            if len(span) > 1:
                retokenizer.merge(span, attrs={"NORM": norm})
            else:
                span[0].norm_ = norm
    names = {name.text for _, name in relatives_names(doc)} | {name.split()[0] for name in people if name.strip()}
    after_name = False
    for token in doc:
        if token.norm_ == _KNOWN_FIRM != token.lower_:
            token.lex.prefix_, token.lex.shape_ = "G", "Xxxxx"  # the models know words by these, too: "C#", ".NET"
        is_given = token.text in PLAIN_NAMES
        if token.text in names or (is_given and not after_name):  # not Falk of "Peter Falk"
            token.norm_ = KNOWN_NAME
        after_name = is_given or (token.text.istitle() and token.lower_ in words.COMMON_NAMES)
    return doc


def relatives_names(doc: Doc, nouns: Collection[str] = words.KIN) -> Iterator[tuple[Token, Token]]:
    """Yield the nouns of relatives with the first words of their names: sister, Ines of "my sister Ines Costa"."""
    for noun, name in pairwise(doc):
        if noun.lower_ in nouns and is_name_of(name, noun):
            yield noun, name


def is_name_of(word: Token, noun: Token) -> bool:
    """Return whether a word is the name of a relative: "my sister Ines"; not in "I taught my son French"."""
    a_name = word.is_alpha and len(word) > 1 and word.text[:2].istitle() and word.lower_ not in words.CALENDAR
    if not a_name or noun.lower_ == "family":
        return False
    for owner in reversed(noun.doc[max(0, noun.i - LONGEST_PHRASE) : noun.i]):
        if owner.lower_ in words.POSSESSIVES or owner.text == "'s":
            first = owner.i - (owner.text == "'s")
            before = noun.doc[first - 1] if first > 0 else None
            return before is None or not before.is_alpha or before.lower_ in words.BEFORE_RELATIVES
        if not (owner.is_lower or owner.text == "-"):
            return False
    return False
