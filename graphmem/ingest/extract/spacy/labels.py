"""Correction of the recognizer's labels of names, by lists of given names and places, and by grammar.

The small models label a name of one word that they don't know by chance: "Phoebe" is a place, "Nvidia" too, "Lasix" a
person. Such a label is kept only where the sentence supports it; otherwise the name is that of a thing.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token

THING = "THING"
"""Label of a name that is known not to be one of a person, a place or a firm."""

KNOWN_NAME = "peter"
"""A name that the models always read as that of a person."""


def _lines(name: str) -> frozenset[str]:
    text = files("graphmem.ingest.extract.spacy").joinpath(name).read_text(encoding="utf-8")
    return frozenset(line for line in text.splitlines() if not line.startswith("#"))


PLACES = _lines("places.txt")
_GIVEN_NAMES = _lines("given_names.txt")
PLAIN_NAMES = _GIVEN_NAMES - PLACES
"""Given names that are neither English words nor those of places."""
_NAMES = _GIVEN_NAMES | {name.title() for name in words.COMMON_NAMES}
_IN = frozenset("in to from near around through across outside via into toward towards".split())
_AT = _IN | {"at", "of", "for"}
_VISITING = frozenset("visit leave reach tour explore".split())
_JOINING = frozenset("join leave quit contact sue found start".split())
_ADDRESSING = frozenset(
    "ask call tell meet marry love miss see visit thank know date email text phone invite hire hug kiss help".split()
)
_USING = frozenset("use install run download upgrade configure update compile reinstall uninstall launch".split())
_TAKING = frozenset("take prescribe inject swallow".split())
_TITLES = frozenset("mr mrs ms miss misses mister dr prof sir aunt auntie uncle".split())
_OFFICES = frozenset("doctor professor president captain".split())
_ACRONYM = re.compile(r"[A-Z]{2,6}")
_BUILDINGS = frozenset("airport amphitheater amphitheatre arena bridge boulevard stadium station terminal".split())
_HOUSES = frozenset("apartments bank bar cafe café church club hostel hotel inn pub restaurant school theatre".split())
_REGION = re.compile(r"[A-Z]{2,3}|(?:[A-Z]\.)+[A-Z]?|(?:North|South|Mid)?-?(?:[Ee]ast|[Ww]est)|North|South")
"""An abbreviation, or a quarter of the compass."""


def correct_labels(doc: Doc) -> Doc:
    """Replace wrong labels of names in a parse, add given names that aren't recognized, and return it."""
    for token in doc:
        if token.norm_ == KNOWN_NAME and token.pos_ in ("NOUN", "ADJ", "VERB"):
            token.pos_, token.tag_ = "PROPN", "NNP"
    labels = {ent: _label(ent) for ent in doc.ents}
    missed = (t for t in doc if t.norm_ == KNOWN_NAME and not t.ent_type_ and t.pos_ == "PROPN")
    labels |= {doc[token.i : token.i + 1]: "PERSON" for token in missed}
    if any(label != ent.label_ for ent, label in labels.items()):
        spans = (doc.char_span(ent.start_char, ent.end_char, label) for ent, label in labels.items())
        doc.ents = [span for span in spans if span is not None]
    return doc


def _label(name: Span) -> str:
    label, root = name.label_, name.root
    if label not in words.ENTITY_TYPES or label in ("NORP", "LANGUAGE", "LAW"):
        return label
    head, in_list = _head(root), name.text in PLACES
    if in_list and name.text not in _NAMES:
        return "GPE" if label not in words.PLACES and head in _IN else label
    if len(name) > 1:
        return _label_of_several(name)
    if root.lower_ in words.KIN or not root.is_alpha:
        return label
    is_given = root.text in _NAMES or root.norm_ == KNOWN_NAME
    if label != "PERSON" and is_given and not in_list:
        return label if head in _AT or _specifies(root) or _is_definite(name) or _is_within(name) else "PERSON"
    if label in ("PERSON", "ORG", *words.PLACES) and not is_given and not in_list:
        if head in _USING:
            return "PRODUCT"
        if head in _TAKING and not any(c.dep_ == "prep" and c.i > root.i for c in root.head.children):
            return THING
    if label in words.PLACES:
        return label if in_list or _is_place(name, head) else THING
    if label == "ORG":
        return label if _is_organization(name, head) else THING
    if label == "PERSON" and root.dep_ != "appos":
        return label if is_given or _acts(root) or head in _ADDRESSING | {"with"} else THING
    return label


def _is_place(name: Span, head: str) -> bool:
    """Return whether a sentence or its form supports that a name is one of a place."""
    root = name.root
    if head in _AT | _VISITING or root.dep_ == "appos" or _specifies(root) or _is_definite(name) or _is_within(name):
        return True
    alone = len([t for t in root.sent if not t.is_punct]) == 1
    return alone or _REGION.fullmatch(name.text) is not None


def _is_organization(name: Span, head: str) -> bool:
    """Return whether a name is one of an organization; doubtful are abbreviations and the first word of a sentence."""
    root = name.root
    doubtful = _ACRONYM.fullmatch(name.text) or (root.is_sent_start and root.dep_ != "nsubj")
    if not doubtful or head in _AT | _JOINING | {"by", "with"} or root.dep_ == "appos":
        return True
    return _acts(root) or _is_definite(name) or root.lower_ in words.ORGANIZATIONS


def _label_of_several(name: Span) -> str:
    """Return the label of a name of several words."""
    first, last = name[0].text, name[-1].lower_
    if any(t.lower_ in ("vs", "vs.") for t in name):
        return "EVENT"
    if name.label_ not in ("PERSON", "ORG", "PRODUCT", "EVENT", *words.PLACES):
        return name.label_
    if any(t.lower_ in words.TECHNOLOGIES for t in name):
        return "PRODUCT"
    if last in words.STREETS | _BUILDINGS:
        return "FAC"
    if last in _HOUSES and name.label_ == "PERSON":
        return "ORG"
    is_titled = first.istitle() and first.lower().strip(".") in _TITLES and name[-1].tag_ != "NN"
    return "PERSON" if is_titled else name.label_


def _head(token: Token) -> str:
    """Return the preposition, or the lemma of the verb, that has a noun or what it is joined to as object; else ""."""
    while token.dep_ == "conj" and token.head != token:
        token = token.head
    if token.dep_ == "pobj":
        return token.head.lower_
    return token.head.lemma_.lower() if token.dep_ == "dobj" else ""


def _specifies(token: Token) -> bool:
    """Return whether a name only specifies the noun after it: "Stanford students"."""
    return token.dep_ in ("compound", "nmod", "amod") and token.head.i > token.i


def _is_within(name: Span) -> bool:
    """Return whether a place follows in which a named one lies: "Laurel, Maryland"."""
    after = name.doc[name.end : name.end + 2]
    return len(after) == 2 and after[0].text == "," and after[1].ent_type_ in words.PLACES


def _is_definite(name: Span) -> bool:
    return name.start > 0 and name.doc[name.start - 1].lower_ == "the"


def _acts(token: Token) -> bool:
    """Return whether a name is used as that of a person: as an agent, an owner or an addressee, or after a title."""
    doc = token.doc
    if token.i > 0 and doc[token.i - 1].lower_.strip(".") in _TITLES | _OFFICES:
        return True
    if token.i + 1 < len(doc) and doc[token.i + 1].tag_ == "POS":
        return True
    if token.dep_ in ("attr", "acomp"):  # "our designer is Marieke"
        subjects = (c for c in token.head.children if c.dep_ == "nsubj")
        return any(c.dep_ == "poss" for subject in subjects for c in subject.children)
    acts = token.dep_ in ("nsubj", "nsubjpass") and token.head.pos_ == "VERB"
    return acts or token.dep_ in ("npadvmod", "intj", "vocative")
