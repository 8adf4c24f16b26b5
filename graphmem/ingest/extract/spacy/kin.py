"""Nouns for relatives and pets: their names, their number and what limits them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.tokens import is_name_of

if TYPE_CHECKING:
    from spacy.tokens import Token


def is_named(noun: Token) -> bool:
    """Return whether a relative is given a name: "my boss is Anna Holm", "my dog is called Rex"."""
    if noun.dep_ not in ("nsubj", "nsubjpass") or noun.tag_ not in ("NN", "NNS"):
        return False
    if not {noun.lower_, noun.lemma_.lower()} & words.RELATIONAL:
        return False
    if any(c.dep_ in ("appos", "compound") and c.pos_ == "PROPN" for c in noun.children):
        return False  # "my sister, Ida, was named captain"
    name = {"be": "attr", "call": "oprd", "name": "oprd"}.get(noun.head.lemma_)
    named = [c for c in noun.head.children if c.dep_ == name and c.pos_ == "PROPN"]
    if noun.tag_ == "NNS" and not any(t.conjuncts for t in named):
        return False  # "my friends are Democrats"
    return any(not any(c.dep_ in ("det", "poss") for c in t.children) for t in named)


def role_of(noun: Token) -> str:
    """Return a relational noun with what limits it: "climbing partner", "office manager"; not "new" of a boss."""
    word = noun.lower_ if noun.lower_ in words.RELATIONAL else noun.lemma_.lower()
    inside = next((t for c in noun.children if c.dep_ == "prep" and c.lower_ == "in" for t in _bare_after(c)), "")
    if inside and word == "partner":
        return f"{word} in {inside}"
    limits = [c for c in noun.lefts if c.ent_type_ != "PERSON" and _limits(c)]
    if word not in words.SPOUSES | {"partner", "manager"} or any(c.lower_ in words.IN_LIFE | {"line"} for c in limits):
        return word
    return " ".join([*(t.lower_ for c in limits for t in c.subtree if t.text.isalpha()), word])


def is_business_partner(noun: Token) -> bool:
    """Return whether a partner isn't one in life: "my business partner", "my partner at the firm"; not "in Rome"."""
    if noun.lower_ != "partner" or role_of(noun) != "partner":
        return noun.lower_ == "partner"
    phrases = (c for c in noun.children if c.dep_ == "prep" and c.lower_ in ("in", "at"))
    shared = (t for phrase in phrases for t in phrase.children if t.dep_ == "pobj")
    return any(t.ent_type_ in ("", "ORG") for t in shared)


def is_counted(noun: Token) -> bool:
    """Return whether a noun is a number of relatives or pets: "two cats"."""
    return noun.lemma_.lower() in words.RELATIONAL and any(c.dep_ == "nummod" for c in noun.children)


def is_former(noun: Token) -> bool:
    """Return whether a relationship is over: "my former boss", "my first husband"; not "my old friend"."""
    said = {c.lower_ for c in noun.children if c.dep_ in ("amod", "compound")}
    word = noun.lemma_.lower()
    followed = said & {"first", "last"} and word in words.TEMPORARY | words.PARTNERS | words.SPOUSES
    return bool(said & {"former", "previous", "ex"} or followed) or ("old" in said and word in words.TEMPORARY)


def is_parting(verb: Token) -> bool:
    """Return whether a verb is that of a couple that is no longer one: "broke up", "separated", "are divorced"."""
    word, children = verb.lemma_.lower(), list(verb.children)
    if any(c.dep_ == "neg" or (c.dep_ == "dobj" and word != "divorce") for c in children):
        return False  # "split up the chores"
    said = {c.lower_ for c in children}
    if word in ("be", "get"):
        return bool(said & {"divorced", "separated"})
    return word in ("divorce", "separate") or (word in ("break", "split") and "up" in said)


def parts_couple(partner: Token) -> bool:
    """Return whether a clause says that a partner no longer is one: "I broke up with my girlfriend"."""
    if role_of(partner) not in words.PARTNER_OF:
        return False
    governing = next((t for t in partner.ancestors if t.pos_ in ("VERB", "AUX")), None)
    misread = (c for c in partner.children if c.dep_ == "conj" and c.pos_ == "VERB")  # "my wife and I split up"
    return any(is_parting(verb) for verb in (governing, *misread) if verb is not None)


def is_likeness(noun: Token) -> bool:
    """Return whether somebody is only compared with a relative: "you're like my brother"."""
    like = noun.head
    return (
        noun.dep_ == "pobj"
        and like.lower_ in ("like", "as")
        and like.head.lemma_ in ("be", "feel", "look", "seem", "act")
    )


def _bare_after(preposition: Token) -> Iterator[str]:
    """Yield the noun without an article after a preposition: "crime" of "partner in crime"."""
    following = [t for t in preposition.doc[preposition.i + 1 : preposition.i + 3] if t.text != "-"][:1]
    yield from (t.text for t in following if t.pos_ == "NOUN" and t.is_lower)


def _limits(modifier: Token) -> bool:
    """Return whether a word before "partner" says in what: a noun or a gerund, not "former"."""
    gerund = modifier.dep_ == "amod" and modifier.lower_.endswith("ing")
    return modifier.text.isalpha() and (gerund or modifier.dep_ in ("compound", "nmod"))


def introduced(noun: Token) -> list[Token]:
    """Return the names of relatives or pets, for a list the first: Mia in "two kids, Mia and Leo"."""
    if noun.lemma_.lower() not in words.RELATIONAL or any(child.dep_ == "case" for child in noun.children):
        return []  # "it was my grandmother's, a Blüthner"
    return [c for c in noun.children if c.dep_ == "appos" and c.pos_ == "PROPN" and not _is_second_object(c, noun)]


def listed(noun: Token) -> list[Token]:
    """Return what is joined to the name of a relative: Mark of "our neighbors Helen and Mark"."""
    return [c for first in introduced(noun) for c in first.conjuncts if c.i > first.i]


def _is_second_object(name: Token, noun: Token) -> bool:
    """Return whether a name right after a relative is another object: French of "I taught my son French"."""
    if name.ent_type_ in ("NORP", "LANGUAGE"):
        return True
    beside = noun.dep_ in ("dobj", "dative") and name.left_edge.i == noun.i + 1 and noun.lower_ in words.KIN
    return beside and name.ent_type_ != "PERSON" and not is_name_of(name.left_edge, noun)
