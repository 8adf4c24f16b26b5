"""Cleaning of names, relations and facts, and words of texts. Pure functions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from itertools import islice

from graphmem.errors import InvalidEntityName, InvalidInput
from graphmem.models import MAX_FACT_BYTES, MAX_NAME_BYTES, MAX_RELATION_BYTES

MIN_NAME_LENGTH = 3

_EMOJI = "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_JOINER = "\u200d"
# control characters except tab and line ends (white space), zero-width characters, bidirectional controls
_NOT_IN_NAMES = re.compile(
    "[\u0000-\u0008\u000e-\u001b\u007f-\u0084\u0086-\u009f\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]"
    f"(?!(?:(?<=[{_EMOJI}]{_JOINER})|(?<=[{_EMOJI}]\ufe0f{_JOINER}))[{_EMOJI}])"  # one emoji of two
)
_SPACE = re.compile(r"\s+")
MARKS = "".join(chr(n) for n in range(0x300, 0x1800) if unicodedata.category(chr(n)) in ("Mn", "Mc"))
"""Combining marks, among them the vowels of Indian scripts and of Thai, which `\\w` doesn't match."""

QUESTION_MARKS = ("?", "？", "؟")

UNSPACED_SCRIPTS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff"
"""Characters of scripts without spaces between words, for a set of a pattern: Thai, Lao, Burmese, Khmer, Kana, Han."""

UNSPACED = re.compile(f"[{UNSPACED_SCRIPTS}\u3005-\u3007\uac00-\ud7af]+")
"""Text in one of these scripts, or in Korean, where particles are attached to words."""

_NOT_WORD = re.compile(rf"[^\w{MARKS}]+|_+")


def few_marks(text: str) -> str:
    """Return a text with runs of combining marks cut to 30.

    Normalization takes quadratic time in the length of such a run (the Stream-Safe Text Process of Unicode, UAX 15, has
    the same limit).
    """
    marks = "" if text.isascii() else "".join(c for c in set(text) if unicodedata.combining(c))
    return re.sub(f"([{marks}]{{30}})[{marks}]+", r"\1", text) if marks else text


def clean(text: str, max_bytes: int) -> str:
    """Return `text` in NFKC, without invisible characters, white space collapsed, cut to `max_bytes` of UTF-8.

    The joiner of two emoji is kept, as it makes one of them. The text is cut between characters. The function is
    idempotent.
    """
    if len(text) > max_bytes * 8:
        text = text[: max_bytes * 8]  # avoids normalizing a megabyte for its first 512 bytes
    if text.isascii() and text.isprintable():
        # no invisible characters, one byte each: same result, four times as fast
        return " ".join(text.split())[:max_bytes].rstrip()
    text = _SPACE.sub(" ", _NOT_IN_NAMES.sub("", unicodedata.normalize("NFKC", few_marks(text)))).strip()
    if len(text) * 4 > max_bytes:
        text = text.encode()[:max_bytes].decode(errors="ignore").rstrip(_JOINER).strip()
    return text


def display_name(name: str) -> str:
    """Return the display form of a name."""
    return clean(name, MAX_NAME_BYTES)


def canonical(name: str) -> str:
    """Return the lookup form of a name: cleaned and lower-cased, not case-folded ("ß" is kept), without joiners."""
    return _key(display_name(name))


def is_punctuation(text: str) -> bool:
    """Return whether a text has no letter, digit or symbol such as an emoji, but only punctuation or spaces."""
    return not any(c.isalnum() or unicodedata.category(c) == "So" for c in text)


def require_name(name: str, allowed: Collection[str] = ()) -> tuple[str, str]:
    """Return (display form, canonical form) of a name that may become an entity.

    Parameters
    ----------
    name
        Any text.
    allowed
        Canonical names that may be shorter than the limit (C, R, Go, …).

    Raises
    ------
    InvalidEntityName
        If fewer than 3 characters are left after cleaning, or no letter, digit or symbol. A wide character (Han, Kana,
        Hangul) counts as two, since names of two such characters are common.
    """
    shown = display_name(name)
    key = _key(shown)
    if len(key) < MIN_NAME_LENGTH and key not in allowed and _width(key) < MIN_NAME_LENGTH:
        raise InvalidEntityName(
            f"entity name {name[:80]!r}: {len(key)} characters after cleaning, at least {MIN_NAME_LENGTH} are needed "
            "unless short_names in the ontology file lists it"
        )
    if is_punctuation(key):
        raise InvalidEntityName(f"entity name {name[:80]!r}: no letter, digit or symbol in it")
    return shown, key


def _key(shown: str) -> str:
    """Return the canonical form of a clean name; outside ASCII lower case may be longer than upper case."""
    return shown.lower() if shown.isascii() else clean(shown.lower(), MAX_NAME_BYTES).replace(_JOINER, "")


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) == "W" and c.isalpha() else 1 for c in text)


def relation_name(relation: str) -> str:
    """Return a verb phrase in the stored snake_case form: "Works at" becomes "works_at".

    Raises
    ------
    InvalidInput
        If it contains no letter or digit.
    """
    return _relation_name(relation[: MAX_RELATION_BYTES * 8])


@lru_cache(maxsize=4096)
def _relation_name(relation: str) -> str:
    words = _NOT_WORD.sub(" ", clean(relation, MAX_RELATION_BYTES).lower()).split()
    name = clean("_".join(words), MAX_RELATION_BYTES).strip("_")
    if not name:
        raise InvalidInput(f"relation {relation[:80]!r}: no letter or digit in it")
    return name


def relation_words(relation: str) -> str:
    """Return a stored relation as words: "works_at" becomes "works at"."""
    return relation.replace("_", " ")


def plain_fact(source: str, relation: str, target: str) -> str:
    """Return the sentence of a fact that states none: "Ada works at Acme"."""
    return fact_text(f"{source} {relation_words(relation)} {target}")


def fact_text(fact: str) -> str:
    """Return a fact's sentence, cleaned and cut to 2,048 bytes."""
    return clean(fact, MAX_FACT_BYTES)


# Text that is shown -------------------------------------------------------------------------------


# controls except tab and newline, separators of lines, Default_Ignorable_Code_Point of Unicode, and annotations
_ALL = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Arabic, Indic and similar scripts
_JOINED = "\u0620-\u109f\u1780-\u17b3\u17b6-\u180a\u1820-\u18af\ufb50-\ufdff\ufe70-\ufefc"

INVISIBLE = re.compile(
    f"[{_ALL}]"
    f"(?<![{_JOINED}][\u200c\u200d])"  # letters of these scripts are joined or kept apart by them
    f"(?<![{_EMOJI}][\ufe0e\ufe0f])"  # shown as text, or in color
    "(?!(?<=[#*0-9]\ufe0f)\u20e3)"  # a key
    f"(?!(?<=[{_EMOJI}\ufe0f]\u200d)[{_EMOJI}])"  # emoji joined to one
)
"""Control and invisible characters, except tabs, newlines, and those that emoji and scripts are written with."""


def visible(text: str) -> str:
    """Return a text without control and invisible characters, which can hide instructions from a reader."""
    return INVISIBLE.sub("", text)


_INERT = str.maketrans("<>", "‹›")


def inert(text: str) -> str:
    """Return a text whose angle brackets are typographic ones, so that it can't open or close a tag.

    They aren't removed: "latency > 500 ms" without its sign would be another statement.
    """
    return text.translate(_INERT)


# Words --------------------------------------------------------------------------------------------


MAX_QUERY = 512
"""Maximum number of characters of a query that are used."""

STOP_WORDS = frozenset(
    """
    a about after again also am an and are as at be been before being between both but by can could did do does don
    done down during each for from further had has have having he her here him his how i if in into is it its just
    may me might more most must my no nor not now of off on once only or other our out over own s same shall she
    should so some such t than that the their them then there these they this those to too under up us very was we
    were what when where which who whom whose why will with would you your
    """.split()
)

WORD = re.compile(r"[^\W_]+")
_PIECE = 4096


def split_words(text: str) -> list[str]:
    """Return the lower-case words of letters and digits, without diacritics, in order."""
    if not text.isascii():
        text = unaccented(text)
    return WORD.findall(text.replace("'s ", " ").replace("’s ", " ").lower())


def unaccented(text: str) -> str:
    """Return a text in NFKD without combining marks; it is decomposed in pieces, so that other threads can run."""
    text = _without_marks(text)  # first, as ordering a run of marks takes quadratic time
    pieces = (unicodedata.normalize("NFKD", text[i : i + _PIECE]) for i in range(0, len(text), _PIECE))
    return "".join(map(_without_marks, pieces))


def _without_marks(text: str) -> str:
    if not any(map(unicodedata.combining, text)):
        return text
    return text.translate({ord(c): None for c in set(text) if unicodedata.combining(c)})


def query_words(query: str, *, short: bool = False) -> list[str]:
    """Return the distinct significant words of a query: at least 3 characters, no stop words.

    With `short`, shorter ones are included, which tell "Room 7" from "Room 9". For a query of only stop words, return
    those: a weak match is better than none.
    """
    words = list(dict.fromkeys(split_words(_read(query) + " ")))
    long = [word for word in words if len(word) >= 3 or not word.isascii() or short]
    return [word for word in long if word not in STOP_WORDS] or long


def query_phrases(query: str, longest: int = 6) -> list[str]:
    """Return every run of up to `longest` words of a query as a normalized name, for alias look-ups.

    Punctuation at the ends of words is removed, except in names such as "c++"; inside of words, as in "o'brien", it is
    kept. Of text without spaces between words, every run of 2 to 8 characters is a name, too.
    """
    query = _read(query).lower().replace("’", "'")
    words = [w for raw in query.split() if (w := _bare(raw))]
    phrases = {
        " ".join(run): None
        for start in range(len(words))
        for end in range(start + 1, min(start + longest, len(words)) + 1)
        if (run := words[start:end]) and any(w not in STOP_WORDS for w in run)
    }
    return list(dict.fromkeys((*phrases, *islice(_names_inside(words), 8 * MAX_QUERY))))


def _names_inside(words: Iterable[str]) -> Iterator[str]:
    for run in (run[0] for word in words if not word.isascii() for run in UNSPACED.finditer(word)):
        for start in range(len(run) - 1):
            yield from (run[start:end] for end in range(start + 2, min(start + 8, len(run)) + 1))


def _read(query: str) -> str:
    """Return the first `MAX_QUERY` characters of a query, cleaned like names."""
    return clean(query[:MAX_QUERY], 4 * MAX_QUERY).replace(_JOINER, "")


def _bare(word: str) -> str:
    word = word.removesuffix("'s").strip("\"'()[]{}<>,;:!?…«»“”‘")
    return word.removesuffix("'s").rstrip(".") if len(word) > 1 else (word if word.isalnum() else "")
