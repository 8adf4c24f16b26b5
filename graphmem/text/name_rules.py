"""Rules that forbid merging two names regardless of their vector similarity. Pure functions.

Vectors are close for "Alpha 1" and "Alpha 2", "17 August" and "13 September", Anna and Anne, and for a thing and its
subtypes. A false merge does more harm than a duplicate, so vectors alone may only merge names made of the same words,
which differ in spelling and not in meaning (figures: docs/decisions/0022).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files

from graphmem.text.words import WORD, unaccented

_LONG_WORD = 6  # minimum letters of a word that may be misspelled
_DOTTED = re.compile(r"\b(?:[^\W\d_]\.){2,}")  # "U.S.", "S.A."
_APOSTROPHES = re.compile(r"['’]s\b|['’]")
_FILLERS = frozenset("the a an of and".split())
_COMPANY = frozenset(
    "inc incorporated ltd limited llc llp corp corporation company co gmbh plc ag se sa sas sarl srl spa bv nv ab asa "
    "oy oyj kg kk pty pvt".split()
)
_TITLES = frozenset(
    "mr mrs ms miss mx dr doctor prof professor sir madam lord lady rev reverend capt captain lt lieutenant sgt "
    "sergeant col colonel gen general maj major officer detective inspector judge justice senator governor president "
    "chancellor".split()
)
_LONG_FORMS = {
    "assoc": "association",
    "bros": "brothers",
    "dept": "department",
    "ft": "fort",
    "intl": "international",
    "jr": "junior",
    "mt": "mount",
    "natl": "national",
    "sr": "senior",
    "univ": "university",
    "vs": "versus",
}
_SPELLINGS = (
    (re.compile(r"is(ation|e|ed|es|ing|er|ers)$"), r"iz\1"),
    (re.compile(r"ys(e|ed|es|ing|er)$"), r"yz\1"),
    (re.compile(r"(?<=[bdlmnpv])our(?=s?$|ed$|ing$|ful$|ite$|ites$|able$|hood$)"), "or"),
    (re.compile(r"(?<=[bt])re$"), "er"),
    (re.compile(r"ll(?=ed$|ing$|er$|ers$)"), "l"),
    (re.compile(r"ogue(?=s?$)"), "og"),
)
_COUNTED = frozenset(
    "zero one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand "
    "million first second third fourth fifth sixth seventh eighth ninth tenth last next former latter i v x "
    "january february march april may june july august september october november december "
    "jan feb mar apr jun jul aug sep sept oct nov dec "
    "monday tuesday wednesday thursday friday saturday sunday".split()
)
_ROMAN = re.compile(r"(?=[ivxlc]{2})(xc|xl|l?x{0,3})(ix|iv|v?i{0,3})")
_NAMED = frozenset({"person", "organization", "event", "project"})
_PARTICLES = _FILLERS | frozenset(
    "al bin da das de del della den der di do dos du el en et ibn la le les los s ten ter und van vom von y zu".split()
)
_NAMES_OF_ONE = frozenset({"person", "organization", "location"})
"""Types whose plural names denote a different entity."""


def obstacle(first: str, second: str, entity_type: str) -> str | None:
    """Return the reason not to merge two names of a type; None if they consist of the same words.

    Parameters
    ----------
    first, second
        Names as written.
    entity_type
        Entity type of both.
    """
    if numbers_differ(first, second):
        return "different numbers, dates or ordinals"
    one, other = _words(first), _words(second)
    if entity_type == "person":
        return _of_persons(one, other)
    one, other = _bare(one, _FILLERS | _COMPANY), _bare(other, _FILLERS | _COMPANY)
    if "".join(one) == "".join(other) or _is_acronym(first, other) or _is_acronym(second, one):
        return None
    if len(one) != len(other):
        return "one says more than the other"
    reordered = sorted(one) == sorted(other) and (" of " in first or " of " in second)
    # capitalized words are names (counties, rivers, peoples), and the plural of a name is another entity
    common = entity_type not in _NAMES_OF_ONE and first.islower() and second.islower()
    if reordered or all(a == b or (common and _is_plural(a, b)) for a, b in zip(one, other, strict=True)):
        return None
    return "different words"


def is_same_spelling(first: str, second: str, entity_type: str) -> bool:
    """Return whether two names of a type are spellings of the same words in the same order ("Acme", "ACME Inc.")."""
    if numbers_differ(first, second):
        return False
    without = _TITLES if entity_type == "person" else _FILLERS | _COMPANY
    one, other = ("".join(_bare(_words(name), without)) for name in (first, second))
    return one == other


@lru_cache(maxsize=100_000)
def spellings(name: str, entity_type: str) -> frozenset[str]:
    """Return lookup keys of a name: names of a type without an `obstacle` share at least one."""
    words = _words(name)
    if entity_type == "person":
        return frozenset({"".join(_bare(words, _TITLES))})
    bare = _bare(words, _FILLERS | _COMPANY)
    keys = {"".join(bare), " ".join(sorted(map(_without_plural, bare))), name.lower().replace(".", "")}
    return frozenset({*keys, "".join(word[0] for word in bare)} if len(bare) >= 3 else keys)


def is_description(name: str, entity_type: str) -> bool:
    """Return whether a name only describes what has a name: "owner of the Salt Cellar", "Finn (Nneka's friend)"."""
    if entity_type not in _NAMED:
        return False
    return "(" in name or any(word.islower() and word not in _PARTICLES for word in WORD.findall(name))


def may_be_same(first: str, second: str, entity_type: str) -> bool:
    """Return whether two names of a type are worth a question: one may be a short form of the other.

    That is so if the words of one are in the other (Sam, Sam Okafor), with nicknames for given names (Liz, Elizabeth
    Hart), initials (P. Raman, Priya Raman) and misspelled long words (Mircosoft, Microsoft), or if one consists of the
    initials of the other (AC, Alex Chen). Names with different numbers are not.
    """
    if numbers_differ(first, second):
        return False
    one, other = sorted((_words(first), _words(second)), key=len)
    if not one or not other:
        return False
    forms = (other, _bare(other, _FILLERS)) if len(one) == 1 < len(other) and first.isascii() else ()
    if any(_is_initials(one[0], words) for words in forms):
        return True
    one, other = _bare(one, _FILLERS | _COMPANY | _TITLES), _bare(other, _FILLERS | _COMPANY | _TITLES)
    if entity_type == "person":
        initials = len(one) > 1
        return all(any(_is_given_name_of(word, full, initials=initials) for full in other) for word in one)
    # for a thing, a word is enough only where it begins the other name: "Northwind", not "team"
    within = all(word in other or any(_is_misspelled(word, full) for full in other) for word in one)
    return within and (len(one) > 1 or one[0] == other[0] or len(other) == 1)


def short_forms(name: str) -> frozenset[str]:
    """Return the nicknames of a given name, and the given names of a nickname; lower-case words."""
    return _nicknames().get(name.lower(), frozenset())


@cache
def _nicknames() -> dict[str, frozenset[str]]:
    table = tomllib.loads(files("graphmem.text").joinpath("nicknames.toml").read_text("utf-8"))
    found: dict[str, set[str]] = {}
    for name, forms in table.items():
        for form in str(forms).split():
            found.setdefault(name, set()).add(form)
            found.setdefault(form, set()).add(name)
    return {name: frozenset(forms) for name, forms in found.items()}


def _is_given_name_of(word: str, full: str, *, initials: bool) -> bool:
    if word == full or full in short_forms(word) or _is_misspelled(word, full):
        return True
    short, long = sorted((word, full), key=len)
    return initials and len(short) == 1 and long.startswith(short)


def _is_misspelled(one: str, other: str) -> bool:
    """Return whether two words of at least six letters differ in one letter, or in the order of two."""
    if min(len(one), len(other)) < _LONG_WORD or abs(len(one) - len(other)) > 1 or one == other:
        return False
    begin = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    if len(one) != len(other):
        short, long = sorted((one, other), key=len)
        return short[begin:] == long[begin + 1 :]
    a, b = one[begin:], other[begin:]
    return a[1:] == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])


def _is_initials(letters: str, words: Sequence[str]) -> bool:
    return 2 <= len(letters) <= 4 and letters == "".join(word[0] for word in words)


def numbers_differ(first: str, second: str) -> bool:
    """Return whether two names differ in numbers, dates or ordinals; neither vectors nor an LLM may merge those."""
    return _numbers(first) != _numbers(second)


@lru_cache(maxsize=100_000)
def _words(name: str) -> tuple[str, ...]:
    plain = unaccented(name.lower().replace("ß", "ss"))
    return tuple(_spelt(word) for word in WORD.findall(_APOSTROPHES.sub("", _DOTTED.sub(_joined, plain))))


def _joined(found: re.Match[str]) -> str:
    return found[0].replace(".", "")


def _spelt(word: str) -> str:
    word = _LONG_FORMS.get(word, word)
    if len(word) > 4:
        for pattern, plain in _SPELLINGS:
            word = pattern.sub(plain, word)
    return word


@lru_cache(maxsize=100_000)
def _numbers(name: str) -> tuple[str, ...]:
    found = (w for w in _words(name) if w in _COUNTED or _ROMAN.fullmatch(w) or any(c.isdigit() for c in w))
    return tuple(sorted(found))


def _bare(words: Sequence[str], without: frozenset[str]) -> Sequence[str]:
    # a last single letter is no article: "League A"
    left = [word for i, word in enumerate(words, 1) if word not in without or (len(word) == 1 and i == len(words))]
    return left or words


def _of_persons(one: Sequence[str], other: Sequence[str]) -> str | None:
    titles = _TITLES.intersection(one), _TITLES.intersection(other)
    bare = _bare(one, _TITLES), _bare(other, _TITLES)
    if bare[0] != bare[1] and "".join(bare[0]) != "".join(bare[1]):
        return "names of two persons"
    # "Mr Smith" and "Mrs Smith" are two, and so may be "Dr Smith" and "Smith"
    if titles[0] != titles[1] and (all(titles) or len(bare[0]) < 2):
        return "different titles"
    return None


def _is_acronym(name: str, words: Sequence[str]) -> bool:
    letters = name.lower().replace(".", "")
    return len(words) >= 3 and letters.isalpha() and letters == "".join(word[0] for word in words)


def _is_plural(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    if len(short) < 4:
        return False
    return long in (f"{short}s", f"{short}es") or (short.endswith("y") and long == f"{short[:-1]}ies")


def _without_plural(word: str) -> str:
    """Return the common stem of a word and its plural."""
    stem = word.rstrip("es")
    return f"{stem[:-1]}i" if stem.endswith("y") else stem
