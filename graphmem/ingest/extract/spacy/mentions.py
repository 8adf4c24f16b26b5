"""Entities of the names that a text only mentions, without a fact, and their types.

A sentence supports the names in its facts. A name that a message only mentions has nothing but the recognizer's label,
which of a name that it doesn't know is right by chance: its type needs the support of a list, of its words or of the
sentence, and what may be no name at all is no entity.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.labels import is_code, is_full_name, is_identifier, is_plain, is_supported, is_word
from graphmem.protocols import ExtractedEntity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spacy.tokens import Span

    from graphmem.ingest.extract.spacy.names import End, Names

_NO_PROSE = re.compile(r"[()^=$;?!\\→_]|\w:\w|/\d|\s[+]\s")
"""Signs of formulas, code and times."""
_QUOTES = frozenset("\"'“”‘’`*")
_NAMED = frozenset({"PERSON", "ORG", *words.PLACES})
_NO_WORDS = frozenset({"NORP", "LANGUAGE"})


def mentions(names: Names, sentence: Span, *, message: bool, mail: bool = False) -> Iterator[ExtractedEntity]:
    """Yield the entities that a sentence names.

    Parameters
    ----------
    names
        Names of the text.
    sentence
        One of its sentences.
    message
        Whether it is said in a message, where capitals also stand for emphasis and code.
    mail
        Whether this is a mail, where they also stand for titles and the cells of tables.
    """
    if message and _is_all_caps(sentence):
        return
    for end, span in names.named(sentence).items():
        parts = re.findall(r"[^\W_]+", end.name.lower())
        if end.role or all(part in words.ACRONYMS or part.isdigit() for part in parts):
            continue
        supported = not message or is_supported(span, end.label)
        listed = mail and (_has_only_words(span) or _is_mixed(span)) and not (supported and end.label in _NAMED)
        joined = end.label in _NAMED and not supported and any(t.text == "and" for t in span)  # "Tess and Rossen"
        if message and (listed or joined or _is_no_name(end, span)):
            continue
        guess = "person" if is_full_name(span) else "concept"
        kind = end.kind if supported or end.kind == "project" else guess
        yield ExtractedEntity(end.name, kind, confidence=0.8, guessed=True)


def _is_no_name(end: End, span: Span) -> bool:
    """Return whether a name is rather code, a word, or an adjective: "Canadian" in "a Canadian bank"."""
    if is_code(end.name) or _NO_PROSE.search(end.name) or (" " in end.name and end.name.islower()):
        return True
    if len(span) > 2 and span[0].text == span[-1].text:
        return True  # "Roger Bivand Roger": two names
    if end.label == "NORP":
        return span.root.tag_ == "JJ" or (span.root.dep_ in ("amod", "compound") and span.root.head not in span)
    if end.label == "WORK_OF_ART":
        # a button: "Language Selection"
        return span.doc[max(0, span.start - 1)].text in _QUOTES and _has_only_words(span)
    if len(span) == 2 and end.label != "PERSON" and len(span[0].text.strip(".")) == 1 and is_plain(span[1]):
        return True  # "R. However"
    return end.label not in _NO_WORDS and _is_word(end, span)


def _has_only_words(span: Span) -> bool:
    """Return whether all words of a name are English words: "Second Edition", "FileInfo"."""
    said = [t for t in span if t.is_alpha]
    return bool(said) and all(is_word(t.text) or is_identifier(t.text) for t in said)


def _is_mixed(span: Span) -> bool:
    """Return whether a name of several words has numbers or words in lower case: "gcc -std gnu9", "Octave 8.4"."""
    return len(span) > 1 and any((t.is_lower and len(t) > 3) or any(c.isdigit() for c in t.text) for t in span)


def _is_word(end: End, span: Span) -> bool:
    """Return whether a name is only a word; not in "her name is Shadow", "the Eagles" and "the Gulf"."""
    first = span[0]
    article = first if first.lower_ == "the" else first.doc[max(0, first.i - 1)]
    kept = first.dep_ != "compound" and (end.name.endswith("s") or end.label in ("LOC", "FAC", "EVENT"))
    placed = end.label in words.PLACES and first.dep_ == "pobj" and first.head.lower_ in ("in", "to", "from", "near")
    named = ((first.dep_ in ("attr", "oprd") or placed) and not first.n_lefts) or (kept and article.lower_ == "the")
    return not named and is_word(end.name)


def _is_all_caps(sentence: Span) -> bool:
    """Return whether a sentence is in capitals, which distinguish no names."""
    said = [t for t in sentence if t.is_alpha]
    return len(said) > 2 and sum(t.is_upper for t in said) > len(said) * 0.7
