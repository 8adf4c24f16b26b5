"""Facts about oneself in fixed phrases: birthday, age, phone number, e-mail address, favorites, names.

Their values are numbers, dates and addresses, which the entity recognizer doesn't know and the parser doesn't read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from graphmem.protocols import ExtractedEdge

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
    "has_salary": (r"salary", _AMOUNT),
    "has_rent": (r"rent", _AMOUNT),
}
_OWNED = [
    (relation, re.compile(rf"\b{_OWNER} (?:{noun}){_IS}(?P<value>{value})", re.IGNORECASE))
    for relation, (noun, value) in _VALUES.items()
]
_FAVORITE = re.compile(
    rf"\b{_OWNER} (?:all-time )?(?:favou?rite|fave) (?P<noun>[a-z]+(?: [a-z]+)?){_IS}(?P<value>[^,;:.!?()]{{2,50}})",
    re.IGNORECASE,
)
_NO_VALUE = re.compile(r"(?:when|that|to|how|what|because|where|one|not|no longer)\b", re.IGNORECASE)
_ASIDE = re.compile(
    r"(?<=\s)(?:and (?:i|it|we|my|she|he)|but|because|since|so|though|right now|these days|now)\b.*", re.I
)
_AGE = re.compile(
    r"\bI(?:'m| am)(?: now| already)? (?P<one>\d{1,3})(?: years old|(?=\s*(?:[.!,;]|$)))|"
    r"\bI(?:'ve)?(?: just| recently| finally)? turned (?P<two>\d{1,3})(?=\s|[.!,;]|$)(?! (?:percent|degrees))|"
    r"\b(?P<who>[A-Z][\w'-]{1,40}) (?:is|'s)(?: now)? (?P<three>\d{1,3}) years old"
)
_CALLED = re.compile(
    r"(?i:(?:^|[.!,] |\b(?:please|just|but|you can|you may) )call me|"
    r"\b(?:everybody|everyone|people|(?:my )?friends|they) calls? me|\bmy (?:nick)?name(?:'s| is)) "
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
_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")
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
        if (
            len(sentence) > _LONGEST
            or sentence.endswith("?")
            or re.match(r"(?:if|suppose|imagine)\b", sentence, re.IGNORECASE)
        ):
            continue
        yield from _owned(sentence, speaker)
        yield from _ages(sentence, speaker)
        yield from _introductions(sentence, speaker)
        for match in _CALLS.finditer(sentence):
            if (name := match["quoted"] or match["name"]) != match["whom"]:
                yield _edge(name, "alias_of", match["whom"], f"{match['whom']} is also called {name}.", "person")
        for match in _CALLED.finditer(sentence):
            if match["name"].casefold() != speaker.casefold():
                yield _edge(match["name"], "alias_of", speaker, f"{speaker} is also called {match['name']}.", "person")


def _owned(sentence: str, speaker: str) -> Iterator[ExtractedEdge]:
    for relation, pattern in _OWNED:
        for match in pattern.finditer(sentence):
            if (owner := _owner(match, speaker)) is None:
                continue
            value = match["value"].strip()
            noun = relation.removeprefix("has_").replace("_", " ")
            yield _edge(owner, relation, value, f"{owner}'s {noun} is {value}.")
    for match in _FAVORITE.finditer(sentence):
        value = re.sub(r"^(?:the|a|an|probably|definitely|always)\s+", "", _ASIDE.sub("", match["value"])).strip()
        noun = match["noun"].lower()
        owner = _owner(match, speaker)
        if owner and len(value.split()) <= 5 and not _NO_VALUE.match(value) and noun not in ("thing", "part"):
            yield _edge(owner, f"favorite_{noun.replace(' ', '_')}", value, f"{owner}'s favorite {noun} is {value}.")


def _owner(match: re.Match[str], speaker: str) -> str | None:
    """Return who has an attribute: the speaker ("my"), or a capitalized name."""
    name: str | None = match["owner"]
    return speaker if name is None else name if name[0].isupper() else None


def _ages(sentence: str, speaker: str) -> Iterator[ExtractedEdge]:
    for match in _AGE.finditer(sentence):
        years = int(match["one"] or match["two"] or match["three"])
        who = match["who"] or speaker
        if years <= _OLDEST and (match["who"] or years > 4):
            yield _edge(who, "has_age", f"{years} years", f"{who} is {years} years old.")


def _introductions(sentence: str, speaker: str) -> Iterator[ExtractedEdge]:
    """Yield works_at for "Dana from Globex here", said by Dana."""
    for match in _INTRODUCED.finditer(sentence):
        if match["first"].casefold() == speaker.split()[0].casefold():
            fact = f"{speaker} is from {match['org']}."
            yield replace(_edge(speaker, "works_at", match["org"], fact, "organization"), confidence=_INTRODUCTION)


def _edge(source: str, relation: str, target: str, fact: str, target_type: str = "concept") -> ExtractedEdge:
    return ExtractedEdge(
        source, relation, target, fact=fact, confidence=CONFIDENCE, source_type="person", target_type=target_type
    )
