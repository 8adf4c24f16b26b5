"""Names in texts (search for known ones, extraction of others), and rules that forbid merging two names.

Vectors are close for "Alpha 1" and "Alpha 2", "17 August" and "13 September", Anna and Anne, and for a thing and its
subtypes. A false merge does more harm than a duplicate, so vectors alone may only merge names made of the same words,
which differ in spelling and not in meaning (figures: docs/decisions/0022).

Names and sentences are extracted by spaCy if it is installed, otherwise by capitals and punctuation.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Protocol

from graphmem.text.date_patterns import MONTHS, WEEKDAYS
from graphmem.text.english import batch_size, english_pipeline, parsing, pieces, spacy_available
from graphmem.text.normalize import UNSPACED_SCRIPTS, WORD, clean, unaccented

if TYPE_CHECKING:
    from spacy.tokens import Doc

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
    "jan feb mar apr jun jul aug sep sept oct nov dec".split()
).union(MONTHS, WEEKDAYS)
_ROMAN = re.compile(r"(?=[ivxlc]{2})(xc|xl|l?x{0,3})(ix|iv|v?i{0,3})")
_GIVEN_NAMES = frozenset("april may june august jan li liv vi xi".split())
"""Names of people that also are months or Roman numerals."""
_NAMED = frozenset({"person", "organization", "event", "project"})
PARTICLES = _FILLERS | frozenset(
    "al bin da das de del della den der di do dos du el en et ibn la le les los s ten ter und van vom von y zu".split()
)
"""Words in lower case within names."""
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
    if numbers_differ(first, second, entity_type):
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
    if numbers_differ(first, second, entity_type):
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
    return "(" in name or any(word.islower() and word not in PARTICLES for word in WORD.findall(name))


def may_be_same(first: str, second: str, entity_type: str) -> bool:
    """Return whether two names of a type are worth a question: one may be a short form of the other.

    That is so if the words of one are in the other (Sam, Sam Okafor), with nicknames for given names (Liz, Elizabeth
    Hart), initials (P. Raman, Priya Raman) and misspelled long words (Mircosoft, Microsoft), or if one consists of the
    initials of the other (AC, Alex Chen) or of a double given name in it (KP, Klaus-Peter Ohlsen). Names with different
    numbers are not.
    """
    if numbers_differ(first, second, entity_type):
        return False
    short, long = sorted((first, second), key=lambda name: len(_words(name)))
    one, other = _words(short), _words(long)
    if not one or not other:
        return False
    doubled = [_words(part) for part in long.split() if "-" in part] if entity_type == "person" else []
    forms = (other, _bare(other, _FILLERS), *doubled) if len(one) == 1 < len(other) and first.isascii() else ()
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


def numbers_differ(first: str, second: str, entity_type: str) -> bool:
    """Return whether two names differ in numbers, dates or ordinals; neither vectors nor an LLM may merge those."""
    names_of_people = _GIVEN_NAMES if entity_type == "person" else frozenset[str]()
    one, other = ([n for n in _numbers(name) if n not in names_of_people] for name in (first, second))
    return one != other


@lru_cache(maxsize=100_000)
def _words(name: str) -> tuple[str, ...]:
    plain = unaccented(name.lower().replace("ß", "ss"))
    words = WORD.findall(_APOSTROPHES.sub("", _DOTTED.sub(_without_dots, plain)))
    return tuple(map(_spelt, words)) if words else tuple(plain.split())  # of an emoji its symbols


def _without_dots(found: re.Match[str]) -> str:
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


# Names in texts -----------------------------------------------------------------------------------


_SYMBOLS = frozenset({"So", "Sk", "Cf", "Mn"})  # categories of the characters of an emoji
_SHORTEST = 3  # minimum letters of a name matched in any letter case
_INFLECTED = 4  # minimum letters of a name that may have an ending
_BETWEEN = r"[\s_.\-]{1,3}"
_BEFORE, _AFTER = r"(?<![^\W_])", r"(?![^\W_])"
# with the parts of Hangul, into which folding splits its syllables
_UNSPACED = re.compile(f"[{UNSPACED_SCRIPTS}\u1100-\u11ff]")
_NO_LETTERS = re.compile(r"[^\w ]|_")
_BRACKETS = re.compile(r" ?\([^)\n]{0,300}\)")
_LONGEST_TITLE = 300
_NUMBERS = frozenset({"CARDINAL", "ORDINAL", "PERCENT", "QUANTITY"})
_LONGEST_NAME = 100
_LONGEST_TEXT = 100_000  # characters; spaCy refuses a million
_SENTENCE = re.compile(r"[^.!?。！？।؟۔\n]+(?:[.!?。！？।؟۔]+[\"')\]」』”’]*|\n|$)")
_LINE = re.compile(r"[^\n]+")
_CAPITALS = re.compile(
    r"(?<=[\w,;:] )[A-Z][\w'’-]*(?: (?:of |the |de |von )?[A-Z][\w'’-]*)*|"
    r"(?<!\w)[A-Z][\w'’-]{0,99}+(?: [A-Z][\w'’-]*)+"
)


def folded(text: str) -> str:
    """Return a text in one letter case, without accents and invisible characters."""
    if not text.isascii():
        text = clean(text, 4 * len(text.encode("utf-8", "surrogatepass")))
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return text.casefold()


def parts_of_name(name: str) -> tuple[str, ...]:
    """Return the words of a person's name of several words by which the person may be called, without titles."""
    words = [word for word in WORD.findall(name) if len(word) >= _SHORTEST and word.lower() not in _TITLES | PARTICLES]
    return tuple(dict.fromkeys(words)) if len(words) > 1 else ()


class NameFinder:
    """Finder of names as whole words, ignoring letter case and accents.

    A name also matches with a possessive or plural ending ("Maya's", "Mayas"), and with an underscore, hyphen or dot
    instead of a space. A name of fewer than three letters matches only in its exact form, since "it" is not "IT"; so
    does an emoji. In scripts without spaces between words, such as Chinese, a name matches anywhere in the text.

    Parameters
    ----------
    names
        The names, in any form.
    longer
        Names of others, such as "Alex Stone" beside "Alex": what is part of one of these isn't found.
    """

    def __init__(self, names: Iterable[str], longer: Iterable[str] = ()) -> None:
        forms = {name for name in names if name.strip()}
        loose = {f for name in forms if len(f := folded(name).strip()) >= _SHORTEST or (len(f) > 1 and _is_unspaced(f))}
        short = {name.strip() for name in forms if folded(name).strip() not in loose}
        self._loose = _pattern(loose)
        self._exact = _pattern({name for name in short if _is_exact_name(name)})
        others = {name.strip() for name in longer if name.strip()}
        self._longer = _pattern(map(folded, others))
        self._longer_exact = _pattern(others, re.IGNORECASE)

    def found_in(self, text: str | None) -> bool:
        """Return whether a text contains one of the names."""
        if not text:
            return False
        if self._loose is not None and _found(self._loose, folded(text), self._longer):
            return True
        return self._exact is not None and _found(self._exact, text, self._longer_exact)


def _is_exact_name(name: str) -> bool:
    """Return whether a name of one or two characters is looked for: "JK", or an emoji; not "x" or "-"."""
    is_symbol = not name.isascii() and all(unicodedata.category(c) in _SYMBOLS for c in name)
    return is_symbol or (len(name) > 1 and not name.islower())


def _found(names: re.Pattern[str], text: str, longer: re.Pattern[str] | None) -> bool:
    if names.search(text) is None:
        return False
    return longer is None or names.search(longer.sub("\n", text)) is not None


def _pattern(names: Iterable[str], flags: int = 0) -> re.Pattern[str] | None:
    forms = [_form(name) for name in sorted(names, key=lambda name: (-len(name), name))]
    return re.compile("|".join(forms), flags) if forms else None


def _form(name: str) -> str:
    words = _BETWEEN.join(re.escape(word) for word in re.split(r"\s+", name))
    if _is_unspaced(name):
        return words
    ending = r"(?:['’]?s|es)?" if len(name) >= _INFLECTED else ""
    return f"{_BEFORE}{words}{ending}{_AFTER}"


def _is_unspaced(name: str) -> bool:
    return _UNSPACED.search(name) is not None


def plain(text: str) -> str:
    """Return a text normalized for comparing names: lower case, letters and digits, single spaces."""
    return " ".join(_NO_LETTERS.sub(" ", text.lower()).split())


def bare_title(title: str) -> str:
    """Return a title as a normalized name: its first 300 characters without text in parentheses."""
    title = title[:_LONGEST_TITLE]
    return plain(_BRACKETS.sub("", title)) or plain(title)


@dataclass(frozen=True, slots=True)
class Phrases:
    """The phrases of a text: its normalized names, and the ranges of its sentences."""

    names: tuple[str, ...]
    sentences: tuple[tuple[int, int], ...]


class PhraseFinder(Protocol):
    """A finder of names and sentences."""

    def find(self, texts: Sequence[str]) -> list[Phrases]:
        """Return names and sentences of each text."""
        ...


def sentence_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return the ranges of the sentences of a text, by its punctuation and lines."""
    return tuple(found.span() for found in _SENTENCE.finditer(text) if found[0].strip())


class PlainPhrases:
    """Finder by regular expressions: runs of capitalized words, and sentences by punctuation."""

    def find(self, texts: Sequence[str]) -> list[Phrases]:
        """Return names and sentences of each text."""
        return [
            Phrases(_distinct(found[0] for found in _CAPITALS.finditer(text)), sentence_spans(text)) for text in texts
        ]


class SpacyPhrases:
    """Finder by spaCy: named entities except numbers, noun chunks without stop words, and parsed sentences."""

    def find(self, texts: Sequence[str]) -> list[Phrases]:
        """Return names and sentences of each text; the model is loaded with the first text."""
        if not texts:
            return []
        cut = [list(pieces(text[:_LONGEST_TEXT])) for text in texts]
        every = [piece for text in cut for piece in text]
        with parsing():
            docs = english_pipeline().pipe(every, batch_size=min(64, batch_size(every)), disable=["lemmatizer"])
            found = map(_of_doc, docs)
            return [_joined([next(found) for _ in text], text) for text in cut]


def phrases_of_list(text: str, names: Iterable[str]) -> Phrases:
    """Return the phrases of a list of facts: the given names of its subjects and objects, and a sentence for each line.

    Names of others, in facts that are sentences of their own, are found as by `PlainPhrases`.
    """
    lines = tuple(found.span() for found in _LINE.finditer(text) if not found[0].isspace())
    return Phrases(_distinct([*names, *(found[0] for found in _CAPITALS.finditer(text))]), lines)


def phrase_finder() -> PhraseFinder:
    """Return the best installed phrase finder."""
    return SpacyPhrases() if spacy_available() else PlainPhrases()


def _of_doc(doc: Doc) -> Phrases:
    entities = [entity.text for entity in doc.ents if entity.label_ not in _NUMBERS]
    chunks = [" ".join(token.text for token in chunk if not token.is_stop) for chunk in doc.noun_chunks]
    sentences = tuple((sentence.start_char, sentence.end_char) for sentence in doc.sents if sentence.text.strip())
    return Phrases(_distinct([*entities, *chunks]), sentences)


def _joined(parts: Sequence[Phrases], texts: Sequence[str]) -> Phrases:
    """Return the phrases of a text from those of its pieces."""
    if len(parts) == 1:
        return parts[0]
    begins = accumulate((len(text) for text in texts), initial=0)
    places = [(begin + first, begin + last) for part, begin in zip(parts, begins) for first, last in part.sentences]  # noqa: B905
    return Phrases(_distinct(chain.from_iterable(part.names for part in parts)), tuple(places))


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    found = dict.fromkeys(plain(name) for name in names)
    return tuple(sorted(name for name in found if name and len(name) <= _LONGEST_NAME))
