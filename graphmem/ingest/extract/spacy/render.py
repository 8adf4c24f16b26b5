"""Rendering of clauses as self-contained sentences: names for pronouns, dates for "yesterday"."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.clauses import SUBJECTS, helpers, is_denied, joins_verb
from graphmem.ingest.extract.spacy.kin import introduced
from graphmem.text.dates import DateSpan, written

if TYPE_CHECKING:
    from spacy.tokens import Token

    from graphmem.ingest.extract.spacy.clauses import Clause
    from graphmem.ingest.extract.spacy.names import End, Names

_LEFT_OUT = frozenset("intj cc advcl parataxis relcl punct dep ccomp csubj mark meta discourse appos".split())
_MAX_TOKENS = 40
_FIRST_OR_SECOND = words.FIRST_PERSON | words.SECOND_PERSON
_KEEPING = frozenset("for since until till by before after from to around of between".split())
_BETWEEN = 6  # tokens from "between" to the second date
_STANDING = frozenset("located based headquartered known called named situated".split())
_NOMINATIVE = frozenset("i we he she they".split())
_DANGLING = frozenset(
    "not for of with in on to and or by about at from but as like than because that the a an after before since".split()
)


@dataclass(frozen=True, slots=True)
class Dates:
    """Dates of an episode by the tokens that they cover."""

    at: Mapping[int, DateSpan]

    def first(self, token: Token) -> bool:
        """Return whether a token is the first one of its date."""
        return self.at.get(token.i) is not None and self.at.get(token.i - 1) is not self.at[token.i]


def sentence(clause: Clause, subject: End, names: Names, dates: Dates, apart: frozenset[int] = frozenset()) -> str:
    """Return the sentence of a clause about one subject, without the dependents of the tokens `apart`."""
    tokens = _tokens(clause, apart)
    head = clause.subjects[0] if clause.subjects else None
    inside = {t.i for t in head.subtree} | {t.i for c in head.conjuncts for t in c.subtree} if head else set[int]()
    if clause.verb.i in inside:  # a relative clause: its antecedent is its subject
        inside -= {t.i for t in clause.chain[0].subtree}
        tokens = [t for t in tokens if t.tag_ not in ("WP", "WDT")]
    elif clause.chain[0].dep_ == "relcl":  # "Beryl is a window manager that runs on Linux"
        tokens = [t for t in tokens if t.tag_ not in ("WP", "WDT") or t.dep_ not in SUBJECTS]
    start = head.i if head else clause.chain[0].i
    front = [
        t
        for t in tokens
        if t.i < start
        and t.i not in inside
        and (t.i in dates.at or (t.i + 1 in dates.at and t.pos_ == "ADP") or _is_each(t) or t.lower_ == "every")
    ]
    body = [t for t in tokens if t.i not in inside and t.i > start] if head else tokens
    if (head and head.i > clause.chain[0].i) or (clause.subjects and not any(t.i in inside for t in tokens)):
        body = [t for t in tokens if t.i not in inside]
        front = []
    body = [t for t in body if t.lower_ != "i" or (t.head in clause.chain and t.dep_ not in SUBJECTS)]
    while body and (body[0].pos_ in ("ADV", "PUNCT", "CCONJ", "INTJ") and body[0].lower_ not in words.NEGATORS):
        body.pop(0)  # "So," and "Well,"
    finite = _finite(body, clause)
    several = any(t.tag_ == "NNS" and not introduced(t) for t in clause.subjects)
    joined = len(clause.subjects) > 1 and not several
    pieces = [subject.name]
    if clause.passive and not any(t.dep_ == "auxpass" for t in body):
        pieces.append("is" if clause.verb.lower_ in _STANDING else "was")
    elif clause.verb.tag_ == "VBG" and len(clause.chain) == 1 and not helpers(clause.verb):
        pieces.append("is")
    for token in (*body, *front):
        piece = _piece(token, subject, names, dates, finite=token is finite, joined=joined)
        if piece is None:
            continue
        if token.text == "-" and token.whitespace_ and pieces[-1] != subject.name:
            break
        hyphen = token.i > 0 and not token.nbor(-1).whitespace_ and "-" in (token.text, token.nbor(-1).text)
        if hyphen or piece.startswith(("n't", "'")) or piece in (",", ".", ";", ":"):
            pieces[-1] += piece
        else:
            pieces.append(piece)
    said = re.sub(r"\s+", " ", " ".join(pieces)).strip(" ,;:-").split(" ")
    while len(said) > 1 and said[-1] in _DANGLING:
        said.pop()
    text = " ".join(said)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _tokens(clause: Clause, apart: frozenset[int]) -> list[Token]:
    """Return the tokens of a clause in order, without those of other clauses."""
    chain = {t.i for t in clause.chain}
    tops = (clause.chain[0], clause.verb) if clause.verb not in clause.chain[0].subtree else (clause.chain[0],)
    kept: dict[int, Token] = {}

    def add(token: Token) -> None:
        kept[token.i] = token
        contrasted = token.pos_ in ("NOUN", "PROPN") and any(c.dep_ == "neg" for c in token.children)
        for child in token.children:
            if child.i in chain:
                add(child)
            elif child.i in apart or (contrasted and child.dep_ in ("neg", "appos")) or _is_left_out(child):
                continue  # "in Bern, not Berlin", "not in Berlin"
            elif child.dep_ in _LEFT_OUT and not (child.dep_ == "punct" and child.text in ("-", "'")):
                joins = child.dep_ == "cc" and (not is_verb(token) or any(c.i in chain for c in token.conjuncts))
                joins = joins or _lists(child, token) or _joins_adverbs(child)
                named = child.dep_ == "appos" and token.pos_ in ("NOUN", "PROPN")
                if joins or named or (child.dep_ == "advcl" and token.lemma_ == "go" and child.i == token.i + 1):
                    add(child)
            elif (
                (child.dep_ == "conj" and is_verb(token))  # also "…, but not a fan of it"
                or (child.dep_ == "pcomp" and any(c.dep_ in ("nsubj", "nsubjpass") for c in child.children))
                or (child.dep_ == "conj" and not is_verb(token) and (joins_verb(token) or child.lower_ in _NOMINATIVE))
                or (child.dep_ == "npadvmod" and child.pos_ == "PROPN" and not (child.ent_type_ or _is_each(child)))
            ):
                continue
            else:
                add(child)

    for top in tops:
        add(top)
    return [kept[i] for i in sorted(kept)][:_MAX_TOKENS]


def _joins_adverbs(word: Token) -> bool:
    """Return whether a word is the "and" of "now and then"."""
    sides = (word.nbor(-1), word.nbor()) if 0 < word.i < len(word.doc) - 1 else ()
    return bool(sides) and all(t.dep_ == "advmod" and t.head == word.head for t in sides)


def _is_each(noun: Token) -> bool:
    """Return whether a day is one of many: "every Monday"."""
    return any(c.lower_ in ("every", "each") for c in noun.children)


def _lists(comma: Token, noun: Token) -> bool:
    """Return whether a comma separates a noun from the next one of a list, or a place from its country."""
    following = comma.nbor() if comma.i + 1 < len(comma.doc) else comma
    deps = ("conj", "appos") if noun.ent_type_ in words.PLACES else ("conj",)
    joined = (c for c in noun.children if c.dep_ in deps and c.left_edge == following)
    return comma.text == "," and noun.pos_ in ("NOUN", "PROPN") and any(c.pos_ in ("NOUN", "PROPN") for c in joined)


def _is_left_out(token: Token) -> bool:
    return is_denied(token) or (token.dep_ == "prep" and any(c.dep_ == "neg" for c in token.children))


def is_verb(token: Token) -> bool:
    """Return whether a token is a verb or auxiliary."""
    return token.pos_ in ("VERB", "AUX")


def _finite(body: Collection[Token], clause: Clause) -> Token | None:
    for token in body:
        head = token.head.head if token.head.dep_ == "auxpass" else token.head
        if head in (clause.chain[0], clause.verb) and token.dep_ in ("aux", "auxpass") and token.lower_ != "to":
            return token
        if token is clause.chain[0] or token is clause.verb:
            return token
    return None


def _piece(token: Token, subject: End, names: Names, dates: Dates, *, finite: bool, joined: bool) -> str | None:
    """Return the rendered text of a token; None to omit it."""
    span = dates.at.get(token.i)
    if span is not None:
        if not dates.first(token):
            return None
        text = written(span.begin, span.grain)
        before = token.nbor(-1).lower_ if token.i > token.doc[0].i else ""
        if before == "and" and "between" in (t.lower_ for t in token.doc[max(0, token.i - _BETWEEN) : token.i]):
            before = "between"
        return text.split(" ", 1)[1] if before in _KEEPING else text
    if (
        token.i + 1 < len(token.doc)
        and dates.at.get(token.i + 1)
        and dates.first(token.nbor())
        and token.lower_ in ("in", "on", "at")
    ):
        return None  # the rendered date has its own preposition
    if finite and token.tag_ == "VBP" and joined and subject.kind == "person" and not subject.role:
        return words.third_person(token.lemma_)
    if finite:
        return _agreeing(token, subject)
    word = token.lower_
    if token.i + 1 < len(token.doc) and not token.whitespace_ and token.nbor().text == "-":
        return token.text  # as in "me-time"
    if (word in _FIRST_OR_SECOND or word in words.THIRD_PERSON) and names.title_of_work(token) is None:
        return _person(token, subject, names)
    if token.text == "'s" and token.dep_ == "case":
        return "'s"
    return {"'ll": "will", "'ve": "have", "'re": "are", "'m": "am", "'d": "would"}.get(word, token.text)


def _person(token: Token, subject: End, names: Names) -> str:
    word = token.lower_
    end = next(iter(names.end(token)), None) if word not in words.POSSESSIVES or token.dep_ != "poss" else None
    if end is None:
        end = names.pronoun(token)
    if end is None:
        return token.text
    if word.endswith(("self", "selves")):
        return "themselves" if end.name == subject.name else end.name
    if token.tag_ in ("PRP$", "WP$") or (word in ("mine", "ours", "yours")):
        return "their" if end.name == subject.name else f"{end.name}'s"
    return "them" if end.name == subject.name else end.name


def _agreeing(token: Token, subject: End) -> str:
    """Return a finite verb in the third person singular if its subject was "I" or "you"."""
    word, lemma = token.lower_, token.lemma_.lower()
    if word == "'s" and token.i + 1 < len(token.doc) and token.nbor().lower_ == "been":
        return "has"
    if not (subject.role or token.tag_ == "VBZ"):
        return (
            token.text
            if token.text not in ("'s", "'re", "'ve")
            else {"'s": "is", "'re": "are", "'ve": "have"}[token.text]
        )
    if word in ("'ll", "will"):
        return "will"
    if word in ("'d", "would") or token.tag_ == "MD":
        return "would" if word == "'d" else token.text
    if lemma == "be" or word in ("'m", "m", "'re", "am", "are"):
        return "was" if word in ("was", "were") else "is" if token.tag_ in ("VBP", "VBZ") else word
    if word == "'s":
        return "has" if lemma == "have" else "is"
    if word in ("'ve", "have") and token.tag_ == "VBP":
        return "has"
    if word == "ai":
        return "is"
    if token.tag_ == "VBP" or (token.tag_ == "VB" and token.dep_ not in ("xcomp",)):
        return words.third_person(lemma)
    return token.text.lower() if token.is_sent_start else token.text
