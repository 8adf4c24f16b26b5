"""Repairs of a parse in place: names of relatives, second verbs, and tags that the parser gets wrong in messages."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.clauses import SUBJECTS, dated, governor, helpers
from graphmem.ingest.extract.spacy.render import Dates
from graphmem.ingest.extract.spacy.tokens import LONGEST_PHRASE, relatives_names

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token


def mend_tags(doc: Doc, dates: Dates, reference: datetime) -> None:
    """Correct the parse in place: relatives' names, subjects, past of "I quit in August", present of "I no longer use".

    Parameters
    ----------
    doc
        The parse.
    dates
        Dates by token, with a bare name resolved to the latest such date.
    reference
        Time of the message.
    """
    _mend_relatives(doc)
    _mend_verbs(doc)
    _mend_second_verbs(doc)
    _mend_objects(doc)
    _mend_seen(doc)
    for token in doc:
        if _is_name(token):
            token.tag_, token.pos_, token.dep_ = "NNP", "PROPN", "pobj"
        to = (
            next((c for c in token.children if c.lower_ == "to"), None)
            if token.tag_ == "VB" and token.head != token
            else None
        )
        if to is not None and to.i == token.i - 1 and _is_capital(token):  # "migrating to Azure" is no infinitive
            to.head, to.dep_, to.tag_, to.pos_ = token.head, "prep", "IN", "ADP"
            token.head, token.dep_, token.tag_, token.pos_ = to, "pobj", "NNP", "PROPN"
        if token.tag_ == "NN" and token.ent_type_ in ("PERSON", "GPE", "ORG") and _is_capital(token):
            token.tag_, token.pos_ = "NNP", "PROPN"
        if _joins_present(token):
            token.tag_, token.pos_ = "VBP", "VERB"
        if not any(c.dep_ in SUBJECTS and c.i < token.i for c in token.children) or helpers(token):
            continue
        if token.tag_ == "VBP" and token.lower_ in words.SAME_PAST and _was(token, dates, reference):
            token.tag_ = "VBD"
        elif token.tag_ in ("VB", "IN") and any(c.lower_ == "longer" for c in token.children):
            token.tag_, token.pos_ = "VBP", "VERB"


def _mend_relatives(doc: Doc) -> None:
    """Join in place the names of relatives and pets to their nouns, and to the verb the name in "my cat is Milo"."""
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
        is_name = token.dep_ == "acomp" and token.tag_ == "NNP" and token.ent_type_ not in ("NORP", "LANGUAGE")
        subjects = [c for c in token.head.children if c.dep_ == "nsubj"] if is_name else []
        owned = any(c.dep_ == "poss" and c.lower_ in ("my", "our") for subject in subjects for c in subject.children)
        if owned or any(subject.lower_ in words.RELATIONAL for subject in subjects):
            token.dep_ = "attr"  # "my cat is Milo", "our designer is Marieke"


def _mend_verbs(doc: Doc) -> None:
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


def _mend_seen(doc: Doc) -> None:
    """Correct in place objects that were parsed as the subject of a clause: "I saw Radiohead live on Sunday"."""
    for token in doc:
        if token.dep_ == "ccomp" and token.pos_ in ("ADJ", "ADV") and token.head.lemma_ in ("see", "watch", "catch"):
            for child in list(token.children):
                child.head, child.dep_ = token.head, "dobj" if child.dep_ == "nsubj" else child.dep_
            token.dep_ = "advmod"


def _mend_second_verbs(doc: Doc) -> None:
    """Join in place a second verb to the first one, with a subject of its own that the parser took for an object.

    "They are married and live in Rome", "I grew up in Oslo, studied in Ghent and live in Leeds", "Tom lives in Leeds
    and Lena lives in York", "Sam uses Python and Ana uses Rust".
    """
    for verb in doc:
        _mend_second_liking(verb)
        first = verb.head
        if verb.tag_ in ("VBP", "VBZ", "VBD") and verb.dep_ == "conj" and first.dep_ == "acomp" and first.i < verb.i:
            verb.head = first = first.head
        if _is_joined_past(verb):
            verb.dep_, verb.tag_ = "conj", "VBD"
        plain = verb.dep_ in ("conj", "advcl", "ccomp") and not any(c.dep_ == "mark" for c in verb.children)
        if not plain or verb.tag_ not in ("VBZ", "VBP", "VBD") or first.pos_ not in ("VERB", "AUX") or first.i > verb.i:
            continue
        begin = verb.i
        while doc[begin - 1].head == verb and doc[begin - 1].dep_ in ("aux", "advmod", "neg"):
            begin -= 1
        own = [c for c in verb.children if c.dep_ in SUBJECTS or c.dep_ == "csubj"]
        noun = doc[begin - 1]
        while noun.dep_ != "conj" and first.i < noun.head.i < begin:
            noun = noun.head
        before = doc[noun.left_edge.i - 1]
        if noun.dep_ != "conj" or noun.pos_ not in ("NOUN", "PROPN") or before.lower_ not in ("and", "but"):
            continue
        if own:  # "Python and Ana uses" can't be the subject of one clause
            several = own == [noun.head] and verb.dep_ == "ccomp" and verb.tag_ == first.tag_ == "VBZ"
            if not several or first.lemma_ in words.REPORTING or own[0].left_edge.i != first.i + 1:
                continue
            own[0].head, own[0].dep_ = first, "dobj"
        before.head, noun.head, noun.dep_, verb.dep_ = first, verb, "nsubj", "conj"


def _mend_objects(doc: Doc) -> None:
    """Correct in place objects read as adverbs, joined to a number, or cut in two.

    "I hate cilantro", "we use Python 3.12 and FastAPI", "I'm a team lead".
    """
    for token in doc:
        before = doc[max(0, token.i - 1)]
        if token.dep_ == "xcomp" and token.head.lemma_ == "promote" and token.lower_ in words.OCCUPATIONS:
            _make_object(token)  # "promoted to team lead"
        if token.dep_ == "dep" and token.tag_ == "NN" and before.dep_ == "attr" and before.head == token.head:
            for child in list(before.children):  # "a team lead"
                child.head = token
            token.dep_, before.head, before.dep_ = "attr", token, "compound"
        number = token.head
        if token.dep_ == "conj" and number.dep_ == "nummod" and number.head.pos_ == "PROPN" and token.pos_ == "PROPN":
            for child in [c for c in number.children if c.dep_ in ("cc", "punct")]:
                child.head = number.head
            token.head = number.head
        verb = token.head
        misread = token.dep_ in ("advmod", "acomp") and token.tag_ == "JJ" and token.i == verb.i + 1
        if misread and verb.lemma_ in words.LIKING | {"stand"} and not any(c.dep_ == "dobj" for c in verb.children):
            token.dep_, token.tag_, token.pos_ = "dobj", "NN", "NOUN"


def _make_object(verb: Token) -> None:
    """Turn an infinitive with "to" in place into a noun after that preposition."""
    to = next((c for c in verb.children if c.lower_ == "to" and c.i < verb.i), None)
    if to is None:
        return
    for child in verb.children:
        if child.dep_ in SUBJECTS:
            child.dep_ = "compound"
    to.head, to.dep_, to.tag_, to.pos_ = verb.head, "prep", "IN", "ADP"
    verb.head, verb.dep_, verb.tag_, verb.pos_ = to, "pobj", "NN", "NOUN"


def _mend_second_liking(verb: Token) -> None:
    """Correct in place a second verb of taste that was read as an object: "I hate cilantro but love basil"."""
    before, first = verb.head, governor(verb.head)
    liked = [c for v in (verb, first) for c in v.children if c.dep_ == "dobj" and c.i > verb.i]
    tastes = {verb.lower_, first.lower_} <= words.LIKING and first.i < before.i < verb.i
    if verb.dep_ != "conj" or not tastes or not liked:
        return
    if any(c.dep_ in ("det", "poss") and c.i < before.i for c in liked[0].children):
        return  # "I love the acceptance and love theme"
    for child in [c for c in before.children if c.dep_ == "cc"]:
        child.head = first
    for child in [c for c in liked[0].children if c.i < verb.i and c != before]:
        child.head = before
    before.head, before.dep_, before.tag_, before.pos_ = first, "dobj", "NN", "NOUN"
    verb.head, verb.tag_, verb.pos_ = first, "VBP", "VERB"
    liked[0].head = verb


def _is_joined_past(verb: Token) -> bool:
    """Return whether a participle is the past of a second verb: "I grew up in A, studied in B and live in C"."""
    participle = verb.dep_ == "advcl" and verb.tag_ == "VBN" and verb.head.tag_ == "VBD" and verb.head.i < verb.i
    if not participle or verb.nbor(-1).text != "," or helpers(verb) or any(c.dep_ == "agent" for c in verb.children):
        return False
    return any(c.dep_ == "conj" and c.tag_ in ("VBD", "VBP", "VBZ") for c in verb.children)


def _is_name(token: Token) -> bool:
    """Return whether a word tagged as a verb is a name: "I moved to Pickering"."""
    after_preposition = token.dep_ in ("pobj", "pcomp") and token.i == token.head.i + 1 and token.head.dep_ == "prep"
    return after_preposition and token.tag_ == "VBG" and _is_capital(token)


def _is_capital(token: Token) -> bool:
    """Return whether a word is capitalized inside a sentence with words in lower case."""
    return not token.is_sent_start and token.text.istitle() and any(t.is_lower for t in token.sent[1:])


def _joins_present(token: Token) -> bool:
    """Return whether a noun or infinitive is a coordinated verb in the present: "I live in Oslo and work at Acme"."""
    first = token.head
    if token.dep_ != "conj":
        return False
    if token.tag_ == "NN":
        bare = not any(c.i < token.i for c in token.children)
        return bare and first.tag_ in ("VBP", "VBD") and any(c.dep_ == "prep" for c in token.children)
    has_been = first.tag_ == "VBG" and {c.lemma_ for c in helpers(first)} <= {"be", "have"}
    if token.tag_ != "VB" or helpers(token) or not (has_been or (first.tag_ in ("VBP", "VBD") and not helpers(first))):
        return False
    governed = any(c.dep_ in ("xcomp", "ccomp", "advcl") and first.i < c.i < token.i for c in first.children)
    return any(c.dep_ in SUBJECTS for c in first.children) and not governed  # not "I want to go and live there"


def _was(verb: Token, dates: Dates, reference: datetime) -> bool:
    """Return whether "cut" or "quit" is in the past: with a past date; "quit" also without a future one."""
    if any(c.lower_ in words.HABITUAL for c in verb.subtree):
        return False
    named = [d for t in verb.sent if (d := dates.at.get(t.i)) is not None and dated(t) == verb]
    if verb.lower_ == "quit":
        return all(d.begin <= reference for d in named)
    return any(d.until <= reference for d in named)


def _misread_verb(noun: Token) -> Token | None:
    """Return the verb after a relative and its name that the parser reads as a noun."""
    for verb in noun.doc[noun.i + 1 : noun.i + LONGEST_PHRASE]:
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
