"""Telling years from other numbers of four digits by the words around them: "in 2000", "in 2000 services"."""

from __future__ import annotations

import re

_MAY_FOLLOW = frozenset(
    """
    and or but nor so yet because since while when whenever where if as although though unless until till whereas than
    that which who whom whose how why what in on at by for from to with without about after before during through
    throughout into onto over under between against across near around via per plus versus vs instead thanks due
    according besides except is was were are am has have had having do does did will would can could may might
    must shall should isn't wasn't weren't aren't hasn't haven't hadn't don't doesn't didn't won't wouldn't can't
    couldn't shouldn't i i'm i've i'd i'll we we're we've we'd we'll you he he's he'd she she's she'd it it's they
    they're they've this these those my our your his her its their there someone somebody everyone everybody nobody
    nothing something everything me us him them myself ourselves himself herself themselves the a an no not never all
    both each every another one some many most again already also only just even now then later still too alone ever
    once finally first last soon eventually together onward onwards forward ad ce two three four
    five six seven eight nine ten following alongside along amid among toward towards despite regarding out off up back
    became began came went got gave made took met saw left led won lost built sold brought taught told thought found
    """.split()
)
_NO_ADVERBS = frozenset("family daily weekly monthly yearly elderly friendly supply reply assembly early".split())
_UNITS = frozenset(
    """
    bytes bits kb mb gb dimensions dollars euros pounds meters metres feet miles km kilometers kilograms kg grams steps
    words tokens lines pixels seconds minutes hours days weeks months years calories percent watts rpm
    """.split()
)
_COUNTED = frozenset("to from of around circa by before after".split())
"""Prepositions that are as usual before a number as before a year."""
_NO_BEGIN = frozenset("to from of around circa".split())
"""Prepositions that don't begin a clause with a year and then a name: "from 1990 Market Street"."""
_WORD = re.compile(r"[^\S\n]{1,4}([^\W\d_]+(?:['’][^\W\d_]+)?)")
_AMOUNT = re.compile(r"[.,]\d|[^\S\n]{0,2}[%€$£¥°+](?!\d)|[^\S\n]000(?!\d)|[^\S\n]{0,2}(?:BC|B\.C)")
_RANGE = re.compile(
    r"[^\S\n]{1,4}(?:to|and|or|until|till|through)[^\S\n]{1,4}(\d{4,6}|\d{1,3},\d{3})(?!\w)", re.IGNORECASE
)
_OF_NUMBERS = re.compile(r"[^\S\n]{1,4}(?:(?:to|or|and)[^\S\n]{1,4})?\d|[.,]\d|[^\S\n]{0,2}[%€$£¥°+]", re.IGNORECASE)
_FROM = re.compile(r"(?<!\w)(?:(?:from|since)\s{1,4})?((?:1\d|20)\d\d)\s{1,4}$", re.IGNORECASE)
_FROM_DATE = re.compile(r"(?<!\w)(?:from|between|since)\s[^.!?;\n]{1,50}$", re.IGNORECASE)
_CLAUSE = re.compile(
    r"(?:^|[.!?,;:()\n\"“–—]|(?<!\w)(?:and|but|or|so|that|because|then|where|when|while|back|later|already|even|only))"
    r"\s{0,4}$",
    re.IGNORECASE,
)
_CHANGED = re.compile(
    r"(?<!\w)(?:scal(?:e|es|ed|ing)|gr[eo]w(?:n|s|ing)?|increas(?:e|es|ed|ing)|decreas(?:e|es|ed|ing)|r[io]se|risen|"
    r"rais(?:e|es|ed|ing)|fell|dropped|reduc(?:e|es|ed|ing)|shrank|limit(?:s|ed)?|capped|up)\s[^.!?;\n]{0,50}$",
    re.IGNORECASE,
)
_QUANTITY = re.compile(
    r"(?<!\w)(?:total|sum|limit|max(?:imum)?|min(?:imum)?|number|amount|count|budget|capacity|cost|price|average|"
    r"population|score|crowd|group|team|size|length|salary|fee|fine|loan|batch(?:es)?)\s{1,4}$",
    re.IGNORECASE,
)
_LOOKED_AT = 60  # characters before a number
_EARLY = 1800
"""Earlier numbers are more often counts."""


def is_number(text: str, start: int, end: int, lead: str, year: int) -> bool:
    """Return whether four digits after a preposition are rather a number than a year.

    Parameters
    ----------
    text
        The text.
    start, end
        Where the preposition begins, and where the digits end.
    lead
        The preposition, in lower case; any other word if the digits follow something that makes a year likely.
    year
        The number.
    """
    before = text[max(0, start - _LOOKED_AT) : start]
    other, is_range = str(year), False
    if (further := _RANGE.match(text, end)) is not None:
        other, is_range, end = further[1], lead == "from", further.end()
    elif lead == "to" and (begun := _FROM.search(before)) is not None:
        other, is_range, before = begun[1], True, before[: begun.start()]
    may_be_size = (lead in ("to", "by") or is_range) and any(n.endswith(("00", "50")) for n in (str(year), other))
    if may_be_size and _CHANGED.search(before) is not None:
        return True
    lead = "in" if is_range else lead
    if _AMOUNT.match(text, end) is not None or _is_count(before, lead, year, is_range=is_range):
        return True
    found = _WORD.match(text, end)
    return found is not None and not _may_follow(found[1], before, lead, year)


def may_end(text: str, end: int) -> bool:
    """Return whether a number that ends there may end a date: no noun and no other number follows."""
    found = _WORD.match(text, end)
    return _OF_NUMBERS.match(text, end) is None and (found is None or _is_function_word(found[1]))


def _is_function_word(word: str) -> bool:
    lower = word.lower().replace("’", "'")
    return lower in _MAY_FOLLOW or (lower.endswith("ly") and lower not in _NO_ADVERBS)


def _is_round(year: int) -> bool:
    return year % 256 == 0 or year % (50 if year >= _EARLY else 10) == 0


def _is_count(before: str, lead: str, year: int, *, is_range: bool) -> bool:
    """Return whether a number is one of things by its size and the words before it."""
    if lead != "circa" and year < _EARLY and (lead in _COUNTED or is_range) and _is_round(year):
        return True
    if lead == "of":
        return _QUANTITY.search(before) is not None
    if year % 100 or lead not in ("to", "by", "around"):
        return False
    return _CLAUSE.search(before) is None and not (lead == "to" and _FROM_DATE.search(before))


def _may_follow(word: str, before: str, lead: str, year: int) -> bool:
    """Return whether a word may follow a year: no noun, except a name that begins a clause ("In 2019 Maria")."""
    if _is_function_word(word):
        return True
    lower = word.lower()
    is_plain = lead not in _COUNTED and not _is_round(year) and lower not in _UNITS
    if _CLAUSE.search(before) is None:
        return is_plain and lower.endswith(("ed", "ing"))
    if word[:1].isupper() and word[1:2].islower():
        return lead not in _NO_BEGIN and (year >= _EARLY or not _is_round(year))
    return is_plain
