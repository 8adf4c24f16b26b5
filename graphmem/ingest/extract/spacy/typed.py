"""Repairs of what people type in haste, for the parser: no subject, no capitals, "'s" for "is" and "has"."""

from __future__ import annotations

import re

from graphmem.ingest.extract.spacy import words
from graphmem.ingest.extract.spacy.labels import SMALL_PLACES

_LEAD = (
    r"(?:an?|the|my|our|his|her|their|some|two|three|four|five|six|both|all|another|new|"
    r"last|yesterday|today|this|early|officially|"
    rf"{'|'.join(sorted(words.STAYS | words.SCHOOLS))}|"
    r"up|out|off|in|into|to|from|for|with|at|on|over|back|away|down|through|\d[\d.,]*k?|[a-z]{3,15}ing)\b|"
    r"[A-Z][\w'-]{0,30}(?: [A-Z][\w'-]{0,30}){0,3}(?: [a-z\d]|[.!]$|,)"  # not a title: "Missed Session: …"
)
_OMITTED = re.compile(  # "Lost my job": the parser tags these as nouns or imperatives
    rf"^(?P<adverb>(?:(?:[Jj]ust|[Ff]inally|[Aa]lso|[Rr]ecently|[Ee]ven)\s+)?)(?:"
    r"(?P<first>[Gg]ot|[Ll]ost|[Qq]uit|[Ll]eft|[Ww]ent|[Bb]ought|[Mm]oved|[Jj]oined|[Ss]tarted(?=\s+at\b)|"
    r"[Bb]een(?=\s+(?:to|\w+ing)\b))\b(?!\s+(?:me|us|you|it)\b)(?=\s+\w)|"
    rf"(?![Ss]tarted to\b)(?P<done>(?i:{'|'.join(sorted(words.DONE))}))\b(?=\s+(?:{_LEAD}))|"
    rf"(?P<did>(?i:{'|'.join(sorted(words.DID))}))\b(?!\s+(?i:i|you|he|she|it|we|they|there)\b)(?=\s+\w)|"
    rf"(?P<not>(?i:have|am))(?P<n>n't| not)\b(?=\s+[a-z])|"
    rf"(?P<is>(?i:{'|'.join(words.SAID_OF_ONESELF)}))\b)"
)
_CLIPPED = re.compile(  # "my sister's called Anne", "the landlord's given us notice"
    r"(?P<noun>\b(?:(?:[Mm]y|[Oo]ur|[Tt]he)(?: [a-z-]{2,15})?|[Hh]is|[Hh]er) [a-z-]{2,15}|\b[A-Z][a-z]{2,20}"
    r"|\b[Ee]very(?:one|body)(?='s (?:fine|ok|okay|good|safe|well)\b))'s "
    rf"(?P<next>(?P<has>got|given|had|{'|'.join(sorted(words.HAS_DONE))})\b(?= \w)|"
    r"(?P<is>called|fine|ok|okay|good|safe|well|an?|in(?! ?-)|at|on(?! ?-)|from|\d{1,2}|not|now|still|just|"
    rf"{'|'.join(sorted(words.IS_DOING))})\b(?= \w|[.!,]|$))"
)
_APPOINTED = re.compile(  # "dentist on Thursday at 3", "Dinner with Anna on Friday"
    rf"^(?P<what>(?:[a-z-]{{2,15}} )?(?:(?P<visit>{'|'.join(sorted(words.VISITS))})|"
    rf"(?:{'|'.join(sorted(words.APPOINTMENTS | words.OCCASIONS - {'baby', 'birthday', 'accident'}))})))"
    r"(?P<appointment> appointment)? (?=(?:with|at|on|in|for|to|tomorrow|tonight|this|next|today)\b)"
    r"(?=[\w ,:'.-]{0,60}\b(?:tomorrow|tonight|today|week|weekend|(?:at|on the) \d|"
    rf"{'|'.join(sorted(words.CALENDAR))}))"
    r"(?![\w ,:'.-]{0,80}\b(?:is|was|are|were|has|had|have|will|can|went|did|do|i|we|you|it|that|he|she|they)\b)",
    re.IGNORECASE,
)
_NEW_JOB = re.compile(r"^[Nn]ew job (?=(?:at|with) [A-Z])")
_DIABETES = re.compile(r"(?P<has>\b(?:have|has)) (?=type [12] diabetes\b)")  # otherwise read as "to type"
_PET = "|".join(sorted(words.PETS))
_NAMED_LATER = re.compile(  # "we've got a new puppy, he's called Biscuit"
    rf"\b(?P<noun>(?:an?|my|our) (?:[a-z-]{{2,12}} ){{0,2}}(?:{_PET}|{'|'.join(sorted(words.PLAIN_KIN))}))"
    r"(?P<between>(?: [a-z0-9']{1,12}){0,4})[,;.!]+ (?:and )?(?:(?:[Hh]e|[Ss]he|[Ii]t)(?:'s| is) (?:called|named)|"
    r"(?:[Hh]is|[Hh]er|[Ii]ts) name(?:'s| is)) (?P<name>[A-Z][\w'-]{1,20})\b"
)
_CLUE = re.compile(r"'s |called|named| name is| type ")
_IN_PLACE = re.compile(r"\b(?P<lead>(?:in|to|from|near|visit(?:ed|ing)?) )(?P<name>[a-z]{3,20}(?: [a-z]{3,20})?)\b")


def with_subject(sentence: str) -> str:
    """Return a sentence that only omits "I" with it: "I lost my job" for "Lost my job"."""
    sentence = _APPOINTED.sub(_appointed, sentence)
    sentence = _NEW_JOB.sub("I got a new job ", sentence)
    return _OMITTED.sub(_said_by_speaker, sentence)


def _appointed(match: re.Match[str]) -> str:
    return f"I have a {match['what'].lower()}{' appointment' if match['visit'] or match['appointment'] else ''} "


def omits_subject(sentence: str) -> bool:
    """Return whether a sentence begins with what somebody did: "Moved to Rome"."""
    return _OMITTED.match(sentence) is not None


def _said_by_speaker(match: re.Match[str]) -> str:
    if match["is"]:
        return f"I'm {match['is'].lower()}"
    if match["not"]:
        return f"I {match['not'].lower()}{match['n']}"
    verb = (match["first"] or match["done"] or match["did"]).lower()
    return f"I {'have ' if verb == 'been' else ''}{match['adverb'].lower()}{verb}"


def unclipped(text: str) -> str:
    """Return a text with "is" or "has" for an "'s" like a possessive, and names where the parser finds their noun."""
    if not _CLUE.search(text):
        return text
    text = _DIABETES.sub(r"\g<has> got ", text)
    return _NAMED_LATER.sub(r"\g<noun> called \g<name>\g<between>", _CLIPPED.sub(_in_full, text))


def _in_full(match: re.Match[str]) -> str:
    return f"{match['noun']} {'has' if match['has'] else 'is'} {match['next']}"


def with_capitals(text: str) -> str:
    """Return a text with the capitals that names of places lack after "in", "to" and "from"."""
    return _IN_PLACE.sub(_capitalized, text)


def _capitalized(match: re.Match[str]) -> str:
    name = match["name"]
    first = name.partition(" ")[0]
    known = name if name in SMALL_PLACES else first if first in SMALL_PLACES else ""
    return f"{match['lead']}{known.title()}{name[len(known) :]}"
