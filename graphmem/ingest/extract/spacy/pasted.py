"""Removal of text that a message hands over or quotes: what is to be translated, pasted mails, roles to play, speech.

The rest is what its author says. If in doubt, a text is left out: it then states nothing, but nothing about the wrong
person either.
"""

from __future__ import annotations

import re

_BLOCKS = re.compile(  # of code, and quotations that are blocks of their own
    r'```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|""".*?(?:"""|\Z)|^[^\S\n]*>[^\n]*$|'
    r'^[^\S\n]*["“](?P<quoted>[^"“”]*)["”][^\S\n]*$',
    re.DOTALL | re.MULTILINE,
)
_SINGLE_QUOTED = re.compile(  # not "'cause I", "my parents' house"
    r"(?<![\w'‘’])['‘](?!(?:cause|cos|cuz|til|em|bout|n|tis|twas)\b)(?=[A-Za-z])"
    r"(?:[^'’\n]|(?<=\w)['’](?=\w)){0,400}['’](?!\w)",
    re.IGNORECASE,
)
_BLOCK = "\0"  # in place of one that was removed
_FIRST_PERSON = re.compile(r"\b(?:I|[Mm]y|[Ww]e|[Oo]ur)\b")
_SPOKEN = re.compile(  # "She goes: I live in Rome"
    r"\b(?:goes|(?:is|was|were|'s|'re) (?:all )?like|announced|asked|explained|claimed|added|insisted|commented)"
    r"(?: (?:to|me|us|him|her|them|[A-Z][a-z]{1,20})){0,2}:[^\n]*"
)
_PARTS = re.compile(r"(?:(?! [-–—] )[^.!?:;\n]|[.!?:;](?!\s))+[.!?:;]?")
_POLITE = (
    r"(?:^|[,;(] | and | but | so )"
    r"(?:(?:please|pls|now|then|also|hey|hi|hello|ok|okay|and|so|next|just|kindly),? |"
    r"(?:can|could|would|will|shall) (?:you|we) |"
    r"(?:(?:i|we) (?:want|need)|(?:i|we)(?:'d| would) like|want|need|help)(?: me| us| you)? to |"
    r"help me |let's |let us |how (?:do|can|would|should) (?:i|you) ){0,4}"
)
_ADDRESSED = re.compile(r"\b(?:please|pls|kindly|you|(?:can|could|shall) we|let's|let us|help me)\b", re.IGNORECASE)
_INTENDED = re.compile(
    r"\b(?:i|we)(?: (?:want|need)|(?:'d| would) like) to (?!role-?play|pretend (?:that )?you)", re.IGNORECASE
)
_TEXT_VERBS = (
    r"(?:translate|proof-?read|spell-?check|re-?write|re-?phrase|reword|paraphrase|summari[sz]e|transcribe|"
    r"(?:make|turn|convert|put) (?:this|these|it|the following|my)\b.{0,40}"
    r"\b(?:sound|more|less|into|shorter|longer|better))"
)
_GENERAL_VERBS = (
    r"(?:(?:say|repeat|draft|write|compose)|(?:correct|fix|edit|polish|improve|shorten|expand|simplify|check|review|"
    r"revise|reply|respond|answer|tell(?! (?:me|you|us))|continue|complete|read|explain|analy[sz]e|classify|critique|"
    r"grade)(?= \w))"
)
_TEXT_REQUEST = re.compile(rf"{_POLITE}{_TEXT_VERBS}\b", re.IGNORECASE)
_GENERAL_REQUEST = re.compile(
    rf"{_POLITE}{_GENERAL_VERBS}\b|\bis (?:this|the|my) (?:following )?(?:sentence|text|grammar)\b", re.IGNORECASE
)
_HOW_TO_ANSWER = re.compile(
    r"\b(?:how|what) (?:should|do|can|could|would|shall|to) (?:(?:i|we) )?(?:\w+ )?"
    r"(?:answer|reply|respond|react|say|tell)\b",
    re.IGNORECASE,
)
_NOUN = re.compile(
    r"\b(?:what \w{1,20} (?:wrote|sent|texted)|"
    r"text|sentences?|paragraphs?|e-?mails?|mails?|messages?|letters?|essays?|reply|response|drafts?|cv|resume|poem|"
    r"posts?|tweets?|articles?|passages?|transcripts?|reviews?|translation|version)\b",
    re.IGNORECASE,
)
_PRESENTED = re.compile(
    r"\b(?:here(?:'s| is| are)|this is|below is|got|received|sent|wrote|texted|e-?mailed|forwarded)\b", re.IGNORECASE
)
_EXAMPLE = re.compile(
    r"(?:\b(?:for (?:example|instance)|e\.g\.)|^(?:an? )?(?:example|sample)(?: \w+){0,3})\s?:$", re.IGNORECASE
)
_THIS = re.compile(  # not "this weekend", "these days"
    r"\b(?:here(?:'s| is| are)|below|following|"
    r"(?:this|these)(?! (?:(?:coming|past|last|next|whole) )?"
    r"(?:mornings?|afternoons?|evenings?|nights?|weekends?|days?|"
    r"weeks?|months?|years?|terms?|semesters?|quarter|season|summer|spring|autumn|fall|winter|time|times|minute|moment|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september|october|"
    r"november|december)(?![\w'-])))\b",
    re.IGNORECASE,
)
_KEPT = re.compile(r"\b(?:notes?|remember|memor\w+|down|in mind|record|log|save|out)\b", re.IGNORECASE)
_ROLE = re.compile(  # a request, not "I play the part of Juliet"
    rf"{_POLITE}(?:pretend(?: (?:that )?you)?|role-?play|(?:play|start|do) (?:(?:the|an?) )?(?:role|pretend|part of)|"
    r"imagine (?:that )?(?:you|i|we)(?:'re|'m| are| am))(?![\w-])",
    re.IGNORECASE,
)
_GREETING = re.compile(r"(?:hi|hello|hey|dear|good (?:morning|afternoon|evening))\b", re.IGNORECASE)
_REQUEST_FOR_ABOVE = re.compile(rf"{_POLITE}{_TEXT_VERBS} (?:this|that|it|the above)\b", re.IGNORECASE)


def without_pasted(text: str) -> str:
    """Return a message without the text that it hands over to be worked on, pastes or quotes."""
    text = _SPOKEN.sub("", _BLOCKS.sub(_without_block, text))
    text = _SINGLE_QUOTED.sub(lambda said: "" if _FIRST_PERSON.search(said[0]) else said[0], text)
    before, last = "", len(text.rstrip())
    for match in _PARTS.finditer(text):
        part = match[0].strip().replace("’", "'")
        if not part:
            continue
        starts_line = "\n" in text[max(0, match.start() - 3) : match.start()]
        if _asks(_ROLE, part, own=True) or (starts_line and _GREETING.match(part) and _announces(before)):
            text = text[: match.start()]
            break
        if match.end() >= last and _asks(_REQUEST_FOR_ABOVE, part):
            return ""
        if _hands_over(part, text[match.end() : match.end() + 4]):
            text = text[: match.end()]
            break
        before = part
    return text.replace(_BLOCK, "")


def _without_block(block: re.Match[str]) -> str:
    """Return a quoted line that has no first person as it is, and a mark in place of any other block."""
    quoted = block["quoted"]
    return f"\n{_BLOCK}\n" if quoted is None or "\n" in quoted or _FIRST_PERSON.search(quoted) else block[0]


def _asks(request: re.Pattern[str], part: str, *, own: bool = False) -> bool:
    """Return whether a sentence asks for something: "I'm bored and need help, please translate this".

    After a subject in the first person, a verb that follows "and" is what its author does: "I write and translate".
    With `own`, so is one after a comma, or that of what the author wants to do.
    """
    for match in request.finditer(part):
        if own and _INTENDED.search(match[0]):
            continue
        joined = own or match[0].startswith(" and ")
        if not joined or _ADDRESSED.search(match[0]) or not _FIRST_PERSON.search(part, 0, match.start()):
            return True
    return False


def _announces(part: str) -> bool:
    """Return whether a letter may follow a sentence: after a question, a colon or the word for it."""
    return part.endswith(("?", ":")) or _NOUN.search(part) is not None


def _hands_over(part: str, following: str) -> bool:
    """Return whether what follows a sentence is a text that it speaks about: "Translate into French:"."""
    colon, shown = part.endswith(":"), _THIS.search(part) is not None
    ends_line = "\n" in following
    if _KEPT.search(part) or _BLOCK in following:
        return False  # "Write this down: I moved to Rome"
    if _asks(_TEXT_REQUEST, part):
        return colon or shown or (ends_line and not _INTENDED.search(part)) or following[1:2] in ("-", "–", "—")
    if _HOW_TO_ANSWER.search(part):
        return colon or shown or ends_line
    named = _NOUN.search(part) is not None
    if _asks(_GENERAL_REQUEST, part):
        return colon or (shown and (named or ends_line))
    presented = named and _PRESENTED.search(part) is not None
    return (presented and (colon or (shown and ends_line))) or _EXAMPLE.search(part) is not None
