"""Rules for relatives, and for what people say of themselves.

Their values are numbers, dates and addresses, which the entity recognizer doesn't know and the parser doesn't read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.clauses import (
    dated,
    is_death,
    is_denied,
    negation,
    objects_of,
    participles,
    subjects_of,
)
from graphmem.ingest.extract.spacy.facts import COMMON, EXPLICIT, PLAIN, end_of_others
from graphmem.ingest.extract.spacy.homes_and_jobs import is_occupation
from graphmem.ingest.extract.spacy.kin import (
    introduced,
    is_business_partner,
    is_former,
    is_likeness,
    is_named,
    parts_couple,
    role_of,
)
from graphmem.ingest.extract.spacy.names import End, Names, as_relative
from graphmem.ingest.extract.spacy.render import Dates
from graphmem.protocols import ExtractedEdge, ExtractedEnding
from graphmem.text.normalize import STOP_WORDS

if TYPE_CHECKING:
    from spacy.tokens import Span, Token


def relatives(sentence: Span, names: Names, dates: Dates) -> Iterator[ExtractedEdge]:
    """Yield the facts of possessives, compounds and appositions of a sentence."""
    for token in sentence:
        if token.pos_ not in ("NOUN", "PROPN") or token.ent_type_ == "PERSON":
            continue
        named = _named_by(token, names)
        owner = names.owner(token)
        if any(c.lower_ in ("late", "future", "own") for c in token.children) or is_likeness(token) or is_denied(token):
            continue
        possessor = owner or _owner_by_verb(token, names)
        if not any(t.lower_ == "about" and t.head.lemma_.lower() in words.FICTIONS for t in token.ancestors):
            yield from _called(token, possessor, names, dates)
        if token.lemma_.lower() in words.RELATIONAL and possessor is not None:
            for one in named or [None]:
                yield from _relative(token, possessor, one, names)
        elif owner is not None and (thing := _apposed(token, names)) is not None and token.lower_ not in words.VAGUE:
            yield _edge(
                owner,
                words.has(names.phrase(token)),
                thing,
                f"{owner.name}'s {names.phrase(token)} is {thing.name}.",
                PLAIN,
            )
        elif named and named[0].kind == "person" and token.pos_ == "NOUN" and not token.ent_type_:
            yield from _office(token, owner, named[0], names)


def newcomers(sentence: Span, found: Iterable[ExtractedEdge]) -> Iterator[ExtractedEnding]:
    """Yield the end of the former ones for "my new girlfriend Lena", "I've got a new dentist, Dr. Park"."""
    nouns = (t for t in sentence if t.pos_ == "NOUN" and any(c.lower_ == "new" for c in t.children))
    kin = (t for t in nouns if t.lemma_.lower() in words.RELATIONAL and not is_business_partner(t))
    new = {words.relation_to(role_of(t)) for t in kin}
    for edge in found:
        group = next((some for some in words.ONE_AT_A_TIME if edge.relation in some), ())
        if edge.relation in new and not edge.ended and not edge.target.startswith(f"{edge.source}'s "):
            yield from (end_of_others(edge, relation) for relation in group)


def separated(edges: Iterable[ExtractedEdge]) -> Iterator[ExtractedEnding]:
    """Yield the end of what somebody was to whose "ex" somebody is: of married_to for "my ex-wife is Ana"."""
    for edge in edges:
        kind, _, role = edge.relation.removeprefix("has_").partition("_")
        if edge.relation.startswith("has_ex") and kind == "ex" and edge.certainty == "stated":
            for relation in (words.relation_to(role),) if role else ("has_partner", "married_to"):
                yield ExtractedEnding(edge.source, relation, edge.target, source_type=edge.source_type, presumed=True)


def _called(token: Token, owner: End | None, names: Names, dates: Dates) -> Iterator[ExtractedEdge]:
    """Yield "Max is_a dog" for "a dog named Max", and its owner if the clause names one."""
    noun = token.lemma_.lower()
    role = role_of(token)
    if token.dep_ == "dobj" and negation(token.head):
        return  # "I don't have a son named Leo"
    naming = participles(token, "named", "called") if token.head.lemma_ != "play" else []  # a part in a play
    called = [t for verb in naming for t in objects_of(verb, "oprd", "dobj", "attr") if t.pos_ == "PROPN"]
    for end in (e for t in called for e in names.ends(t) if not e.role):
        if noun in words.RELATIONAL and owner is not None:
            fact = _edge(owner, words.relation_to(role), end, f"{owner.name} has a {role} named {end.name}.", PLAIN)
            yield replace(fact, valid_from=_since(token, dates))
        yield from (
            _edge(end, "is_a", kind, f"{end.name} is {_article(kind.name)} {kind.name}.", COMMON)
            for kind in names.end(token)
            if not kind.named and token.tag_ == "NN" and (owner is None or noun not in words.KIN)
        )


def _since(token: Token, dates: Dates) -> datetime | None:
    """Return the time at which the object of a past verb was acquired: "adopted a cat on 3 January"."""
    verb = token.head
    if token.dep_ != "dobj" or verb.lemma_ not in ("get", "adopt") or verb.tag_ != "VBD":
        return None
    return next((d.begin for t in verb.subtree if (d := dates.at.get(t.i)) is not None and dated(t) == verb), None)


def _owner_by_verb(token: Token, names: Names) -> End | None:
    """Return the owner by the verb: "I" in "I have a sister"."""
    verb = token.head
    if token.dep_ != "dobj" or verb.lemma_ not in ("have", "get", "adopt") or negation(verb):
        return None
    shared = subjects_of(verb.head) if verb.dep_ == "conj" else []  # "Ida works at Acme and has a son called Leo"
    return next((e for t in subjects_of(verb) or shared for e in names.end(t)), None)


def _named_by(token: Token, names: Names) -> list[End]:
    """Return the proper names attached to a noun: "my sister Anna", "the nurse Ida", "two cats, Tom and Kit"."""
    near = [c for c in token.children if c.dep_ in ("appos", "compound") and names.is_person(c)]
    misread = (c for c in token.children if c.dep_ == "appos" and c.pos_ != "PROPN")  # "my husband Dave snores"
    near += (t for c in misread for t in c.children if t.i == token.i + 1 and names.is_person(t))
    own = introduced(token)
    if token.dep_ in ("appos", "compound", "nmod") and names.is_person(token.head) and not own:
        near.append(token.head)  # not Lindqvist of "Dr. Lindqvist, my grandson Tunde"
    known = [e for other in near for e in names.end(other) if e.label == "PERSON" and not e.role][:1]
    told = (name for first in own for name in (first, *first.conjuncts) if name.pos_ == "PROPN")
    found = [e for name in told for e in names.end(name) if e.named and not e.role]
    return list(dict.fromkeys([*known, *(as_relative(token, end) for end in found)]))


def _apposed(token: Token, names: Names) -> End | None:
    """Return the name in "my home country, Sweden", unless it is a person."""
    near = (c for c in token.children if c.dep_ == "appos" and c.pos_ == "PROPN")
    return next((e for c in near for e in names.end(c) if e.kind != "person" and e.label), None)


def _relative(token: Token, owner: End, named: End | None, names: Names) -> Iterator[ExtractedEdge]:
    noun, role = token.lemma_.lower(), role_of(token)
    relation = words.relation_to(role)
    if named is not None:
        if not owner.named and owner.name in words.KIN:
            return  # "Lucia, Kunle here, mum's son": whose mother isn't said
        if relation == "married_to" and owner.kind != "person":
            return
        certainty = min(EXPLICIT, owner.certainty, named.certainty)
        over = is_former(token)
        fact = f"{named.name} {'was' if over else 'is'} {owner.name}'s {role}."
        yield replace(_edge(owner, relation, named, fact, certainty), ended=over)
        return
    verb = token.head
    left = token.dep_ == "dobj" and verb.lemma_ in ("see", "have", "date") and negation(verb)
    if left or is_former(token) or _is_dead(token) or parts_couple(token):
        return  # "I don't see my therapist anymore"
    if owner.kind != "person" or (noun == "partner" and _in_business(token)):
        return
    remains = token.dep_ == "dobj" and token.head.lemma_ in words.REMAINING
    if token.dep_ == "attr" or remains or is_named(token) or (token.dep_ == "poss" and token.head.lower_ == "name"):
        return  # "Anna is my sister" and "my sister's name is Anna" name her
    for end in names.end(token):
        if end.named and end.name.startswith(f"{owner.name}'s ") and noun != "baby":
            phrase = end.name[len(owner.name) + 3 :]
            if noun in words.UNTELLING_KIN and phrase == token.lower_:
                continue
            article = "" if token.tag_ == "NNS" else f"{_article(phrase)} "
            certainty = min(PLAIN, owner.certainty) if owner.role != "addressee" else 0.5
            whose = words.has(role)
            yield _edge(owner, whose, end, f"{owner.name} has {article}{phrase}.", certainty)


def _is_dead(relative: Token) -> bool:
    """Return whether a relative died: "my husband died", "the passing of my husband", "I lost my sister to cancer"."""
    if relative.dep_ == "pobj" and relative.head.head.lower_ in ("passing", "death", "loss"):
        return relative.head.lower_ == "of"
    if relative.dep_ == "dobj" and relative.tag_ == "NN":
        return relative.head.lemma_ == "lose" and relative.lemma_.lower() in words.KIN
    return relative.dep_ == "nsubj" and is_death(relative.head)


def _in_business(partner: Token) -> bool:
    """Return whether partners are rather those of a firm or an office: "our partners"."""
    return partner.tag_ == "NNS" or any(c.lower_ == "our" for c in partner.children)


def _office(token: Token, owner: End | None, named: End, names: Names) -> Iterator[ExtractedEdge]:
    """Yield "Jane is_ceo_of Acme" for "Acme's CEO Jane" and "Jane, the CEO of Acme"."""
    for child in token.children:
        if child.dep_ == "prep" and child.lower_ in ("of", "at"):
            for noun in child.children:
                owner = owner or next((e for e in names.end(noun) if e.named), None)
    office = token.lower_
    if office in words.KIN:
        return
    if office in words.VAGUE or not office.isalpha():
        return
    if owner is not None and owner.label in ("ORG", "GPE", "WORK_OF_ART"):
        yield _edge(named, f"is_{office}_of", owner, f"{named.name} is {office} of {owner.name}.", PLAIN)
    elif owner is None and token.dep_ in ("appos", "compound") and (is_occupation(token) or office in words.ROLES_OF):
        for end in names.end(token):
            if not end.named and not end.role:
                yield _edge(named, "is_a", end, f"{named.name} is {_article(end.name)} {end.name}.", COMMON)


def _article(noun: str) -> str:
    return "an" if noun[:1].lower() in "aeiou" else "a"


def _edge(source: End, relation: str, target: End, fact: str, confidence: float) -> ExtractedEdge:
    return ExtractedEdge(
        source.name,
        relation,
        target.name,
        fact=fact,
        confidence=confidence,
        source_type=source.kind,
        target_type=target.kind,
    )


# Attributes ---------------------------------------------------------------------------------------


CONFIDENCE = 0.9
_INTRODUCTION = 0.7

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?|"
    r"Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_ORDINAL = r"\d{1,2}(?:st|nd|rd|th)?"
_DAY = rf"(?:{_ORDINAL}(?: of)? {_MONTH}|{_MONTH} {_ORDINAL})(?:,? \d{{4}})?|\d{{4}}-\d\d-\d\d"
_NAME = r"[A-Z][\w'-]{0,40}(?: [A-Z][\w'-]{0,40}){0,2}"
_AMOUNT = r"(?:[$€£]|USD |EUR |GBP )?\d[\d.,]{0,15}\d ?k?(?: ?(?:dollars|euros|pounds|USD|EUR|GBP))?"
_OWNER = rf"(?:my|(?P<owner>{_NAME})'s)(?: (?:new|current|work|private|personal|home))*"
_IS = r"(?:'s| is)(?: now| actually| still| currently| on| the)*:? "
_VALUES = {
    "has_birthday": (r"birthday|bday|date of birth", _DAY),
    "has_phone_number": (r"(?:(?:phone|mobile|cell|telephone)(?: number)?|number)", r"\+?\d[\d ()/.-]{4,20}\d"),
    "has_email": (r"e-?mail(?: address)?", r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,4}"),
    "has_address": (r"(?:home |postal )?address", r"(?![^.!?;]{0,80}[@:])(?=[^.!?;\d]{0,60}\d)[^.!?;\n]{5,80}"),
    "has_salary": (r"salary", _AMOUNT),
    "has_rent": (r"rent", _AMOUNT),
}
_OWNED = [
    (relation, re.compile(rf"\b{_OWNER} (?:{noun}){_IS}(?P<value>{value})", re.IGNORECASE))
    for relation, (noun, value) in _VALUES.items()
]
_FAVORITE = re.compile(
    rf"(?:^(?=fav)|\b{_OWNER} )(?:all-time )?(?:favou?rite|fave|fav) (?P<noun>[a-z]+(?: [a-z]+)?){_IS}"
    r"(?P<value>(?:(?! and my )[^,;:.!?()]){2,50})",
    re.IGNORECASE,
)
_BUDGET = re.compile(
    rf"\bmy budget for (?:the |my |our |an? )?(?:new )?(?P<noun>[a-z]+(?: [a-z]+)?){_IS}(?:about |around |max )?"
    rf"(?P<value>{_AMOUNT})",
    re.IGNORECASE,
)
_NO_VALUE = re.compile(r"(?:like|my|when|that|to|how|what|because|where|one|not|no longer)\b", re.IGNORECASE)
_ASIDE = re.compile(
    r"(?<=\s)(?:and (?:i|it|we|my|she|he)|but|because|since|so|though|right now|these days|now)\b.*", re.I
)
_AGE = re.compile(
    r"\bI(?:'m| am)(?: now| already)? (?P<one>\d{1,3})"
    r"(?: years old|(?=\s*(?:[.!,;]|$)|\s+(?:now|today)\b|"
    r",? and (?:I|i|my|live|work|still|just|have|married|single)\b))|"
    r"\bI(?:'ve)?(?: just| recently| finally)? turned (?P<two>\d{1,3})(?=\s|[.!,;]|$)(?! (?:percent|degrees))|"
    r"\b(?P<who>[A-Z][\w'-]{1,40}) (?:is|'s)(?: now)? (?P<three>\d{1,3}) years old\b|"
    r"\b(?:[Mm]y|[Oo]ur) (?P<kin>[a-z-]{3,20})(?: (?P<named>[A-Z][\w'-]{1,40}))? "
    r"(?:(?:is|'s)(?: now)?|(?:just |recently )?turned) (?P<four>\d{1,3})"
    r"(?: years old\b|(?=\s*(?:[.!,;]|$)|\s+(?:now|today|yesterday|on|last|but)\b|\s+and (?!a\b|half|three|\d)))"
)
_NOT_YET = re.compile(
    r"\b(?:before|until|till|when|once|by the time|if|unless|after|like|as though)\s?$", re.IGNORECASE
)
_CALLED = re.compile(
    r"(?i:(?:^|[.!,] |\b(?:please|just|but|you can|you may) )call me|"
    r"\b(?:everybody|everyone|people|(?:my )?friends|they) calls? me|\bmy (?:nick|real |full |first )?name(?:'s| is)) "
    r"(?P<name>[A-Z][\w'-]{0,30}(?: [A-Z][\w'-]{0,30}){0,2})"
)
_INTRODUCED = re.compile(
    r"(?:^|[,!.] |\b[Tt]his is |\bI'm )(?P<first>[A-Z][\w'-]{0,30}) from "
    r"(?P<org>[A-Z][\w&'-]{0,30}(?: [A-Z][\w&'-]{0,30}){0,2})(?: here)?\s*(?:[.!,]|$)"
)
_CALLS = re.compile(
    r"(?i:\b(?:we|everybody|everyone|people|friends|they)(?: all)? calls?) "
    r"(?P<whom>[A-Z][\w'-]{0,30}(?: [A-Z][\w'-]{0,30})?) "
    r"(?:[\"“](?P<quoted>[\w' -]{1,30})[\"”]|(?P<name>[A-Z][\w'-]{0,30})(?![\w'-]| [A-Z]))"
)
_HYPOTHETICAL = re.compile(
    r"(?:^|[,;:] )(?:let'?s |let us |ok(?:ay)?,? |so,? |please |can you |and )?(?:say|tell (?:them|him|her|people))\b|"
    r"^(?:let'?s |let us |ok(?:ay)?,? |so,? )?(?:if|suppose|supposing|imagine|assume|assuming|pretend|what if)\b|"
    r"\bin (?:this|that|the) (?:scenario|example|hypothetical|simulation)\b|\bhypothetically\b",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")
_QUOTING_ONESELF = re.compile(
    r"(?<![Aa]s )(?<![Ll]ike )\bI (?:just |first |once |already )?(?:said|told|mentioned|thought|believed)\b"
)
_NO_NAMES = STOP_WORDS | set(
    "hello hi hey hiya yes yeah no nope well oh ah sure ok okay thanks nice good great haha lol".split()
)
_OLDEST = 120
_LONGEST = 500


def attributes(text: str, speaker: str) -> Iterator[ExtractedEdge]:
    """Yield the facts that fixed phrases of a message state about the speaker, or about a person it names.

    Parameters
    ----------
    text
        The message as it was written.
    speaker
        Name of who says it.
    """
    for sentence in _SENTENCES.split(text.replace("’", "'")):
        if len(sentence) > _LONGEST or sentence.endswith("?") or _HYPOTHETICAL.search(sentence):
            continue
        sentence = _QUOTING_ONESELF.split(sentence, maxsplit=1)[0]  # "I said my birthday is on 3 May" takes it back
        yield from _owned(sentence, speaker)
        yield from _ages(sentence, speaker)
        yield from _introductions(sentence, speaker)
        for match in _CALLS.finditer(sentence):
            if (name := match["quoted"] or match["name"]) != match["whom"]:
                yield _attribute(name, "alias_of", match["whom"], f"{match['whom']} is also called {name}.", "person")
        for match in _CALLED.finditer(sentence):
            first = match["name"].split()[0].lower()
            if match["name"].casefold() != speaker.casefold() and first not in _NO_NAMES:
                yield _attribute(
                    match["name"], "alias_of", speaker, f"{speaker} is also called {match['name']}.", "person"
                )


def _owned(sentence: str, speaker: str) -> Iterator[ExtractedEdge]:
    for relation, pattern in _OWNED:
        for match in pattern.finditer(sentence):
            if (owner := _owner(match, speaker)) is None:
                continue
            value = match["value"].strip()
            noun = relation.removeprefix("has_").replace("_", " ")
            yield _attribute(owner, relation, value, f"{owner}'s {noun} is {value}.")
    for match in _BUDGET.finditer(sentence):
        noun, value = match["noun"].lower(), match["value"].strip()
        fact = f"{speaker}'s budget for the {noun} is {value}."
        yield _attribute(speaker, f"has_budget_for_{noun.replace(' ', '_')}", value, fact)
    for match in _FAVORITE.finditer(sentence):
        value = re.sub(r"^(?:the|a|an|probably|definitely|always)\s+", "", _ASIDE.sub("", match["value"])).strip()
        noun = match["noun"].lower()
        owner = _owner(match, speaker)
        if owner and len(value.split()) <= 5 and not _NO_VALUE.match(value) and noun not in ("thing", "part"):
            yield _attribute(owner, words.favorite(noun), value, f"{owner}'s favorite {noun} is {value}.")


def _owner(match: re.Match[str], speaker: str) -> str | None:
    """Return who has an attribute: the speaker ("my"), or a capitalized name."""
    name: str | None = match["owner"]
    return speaker if name is None else name if name[0].isupper() else None


def _ages(sentence: str, speaker: str) -> Iterator[ExtractedEdge]:
    for match in _AGE.finditer(sentence):
        if _NOT_YET.search(sentence, 0, match.start()):
            continue
        years = int(match["one"] or match["two"] or match["three"] or match["four"])
        noun = match["kin"]
        if noun and (noun not in words.RELATIONAL or (noun in words.SEVERAL and not match["named"])):
            continue
        who = match["who"] or match["named"] or (f"{speaker}'s {noun}" if noun else speaker)
        if years <= _OLDEST and (match["who"] or noun or years > 4):
            yield _attribute(who, "has_age", f"{years} years", f"{who} is {years} years old.")


def _introductions(sentence: str, speaker: str) -> Iterator[ExtractedEdge]:
    """Yield works_at for "Dana from Globex here", said by Dana."""
    for match in _INTRODUCED.finditer(sentence):
        if match["first"].casefold() == speaker.split()[0].casefold():
            fact = f"{speaker} is from {match['org']}."
            yield replace(_attribute(speaker, "works_at", match["org"], fact, "organization"), confidence=_INTRODUCTION)


def _attribute(source: str, relation: str, target: str, fact: str, target_type: str = "concept") -> ExtractedEdge:
    return ExtractedEdge(
        source, relation, target, fact=fact, confidence=CONFIDENCE, source_type="person", target_type=target_type
    )
