"""Whether a name, a number or a date of a model's reply stands in the text that it was shown. Pure functions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from itertools import pairwise

from graphmem.models import Episode
from graphmem.protocols import (
    ExtractionRequest,
)
from graphmem.text.date_patterns import MONTHS, TENS, WEEKDAYS
from graphmem.text.dates import DateSpan, find_dates
from graphmem.text.normalize import STOP_WORDS, UNSPACED, WORD, unaccented
from graphmem.text.terms import stem

_APOSTROPHE = re.compile("['’‘`´]")
_POSSESSIVE = re.compile("(?<=\\w)['’‘`´]s\\b")
FILLERS = frozenset(
    "a an and at by de del der des di du el for from his her in la las le les los my of on or our the their to und "
    "van von with your".split()
)

_SEASONS = "spring summer autumn fall winter Christmas Easter Halloween Thanksgiving New Year"
"""Names of times that models give dates: "the Christmas closure" for "shut 22 Dec to 4 Jan"."""
_CALENDAR = (*WEEKDAYS, *(month for month in MONTHS if month != "may"))

_NUMBER = re.compile(r"\d+")
_AMOUNT = re.compile(
    r"(?<![\w.,])(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(?:(k|m|bn)|\s(thousand|grand|million))?\b", re.IGNORECASE
)
_DECIMAL = re.compile(r"(?<![\w.,])(\d{1,3})\.(\d{1,3})(?![\d.])")
_TIMES = {"k": 3, "thousand": 3, "grand": 3, "m": 6, "million": 6, "bn": 9}
"""Unit of an amount → the power of ten that it stands for."""
_FULL_HOUR = re.compile(r"(?<![\d:])(\d{1,2}):00(?![\d:])")
_AFTERNOON = re.compile(r"(?<![\d:.,])(\d{1,2})(?:[:.]\d\d)?\s?p\.?m\b", re.IGNORECASE)
_SHORT_YEAR = re.compile(r"(?<!\w)['’](\d\d)(?!\w)")
_NUMERONYM = re.compile(r"([a-z])(\d{1,2})([a-z])")
_SHORT_FORM = 5
"""Letters of a short form, at least: "rabbit" for "RabbitMQ"."""
_DATE = re.compile(r"\b(?:\d{1,2} )?[A-Z][a-z]{2,8} (?:\d{1,2}, )?\d{4}\b|\b\d{4}-\d\d(?:-\d\d)?\b")
_NEAR = timedelta(days=7)
"""Distance of a date that a text may mean by "last night" or "on Friday"."""
_CURRENCIES = {
    "eur": ("€", "euro"),
    "usd": ("$", "dollar", "buck"),
    "gbp": ("£", "pound", "quid"),
    "jpy": ("¥", "yen"),
    "inr": ("₹", "rupee"),
    "chf": ("Fr.", "franc"),
}
"""Code of a currency → its sign and words, which texts have in its place."""
_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_SPELLED = {**{word: n for n, word in enumerate(_UNITS)}, **{word: 10 * n for n, word in enumerate(TENS, 2)}}
_POWERS = {"hundred": 100, "thousand": 1000, "grand": 1000, "million": 1_000_000}
_SHORT_NAME = re.compile(r"(?<![\w'’])[A-Z][A-Za-z0-9](?![\w'’])")
_INITIALS = re.compile(r"(?<![\w'’])[A-Z](?:[A-Z]{1,4}|\.[A-Z]\.)(?![\w'’])")
_NO_NAMES = frozenset("ah am eh er ha hi hm ho lo mm mr ms oh ok ow pm st uh um vs wow ya ye yo".split())


def words(text: str) -> list[str]:
    """Return the lower-case words of a text without diacritics, possessives and plural endings."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", unaccented(text))
    text = _APOSTROPHE.sub("", _POSSESSIVE.sub("", text.lower()))
    return [_singular(word) for word in WORD.findall(text)]


@lru_cache(maxsize=8192)
def _singular(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1]


def spelled_numbers(sequence: Sequence[str]) -> Iterator[str]:
    """Yield the numbers that words spell, in digits: "31" for "thirty", "one"; "2" and "2000" for "two", "thousand"."""
    total = part = None
    for word in (*sequence, ""):
        if (value := _SPELLED.get(word)) is not None:
            part = (part or 0) + value
        elif power := _POWERS.get(word):
            part = max(part or 0, 1)
            if power == 100:
                part *= power
            else:
                yield str(part)
                total, part = (total or 0) + part * power, None
        elif word != "and" and (total, part) != (None, None):
            yield str((total or 0) + (part or 0))
            total = part = None


def thousands(decimal: re.Match[str]) -> str:
    """Return what a decimal number may stand for: 8800 for "8.8"."""
    return decimal[1] + decimal[2].ljust(3, "0")


def plain_amounts(text: str) -> str:
    """Return a text with amounts in digits: "6200" for "6,200" and "6.2k"; "at 10" for "at 10:00"."""

    def plain(match: re.Match[str]) -> str:
        power = _TIMES.get((match[3] or match[4] or "").lower(), 0)
        whole, fraction = match[1].replace(",", ""), (match[2] or ".")[1:]
        if len(fraction) > power:
            return match[0]
        return whole + fraction.ljust(power, "0")

    return _AMOUNT.sub(plain, _FULL_HOUR.sub(r"\1", text))


class Grounds:
    """Words of the texts that a name must occur in.

    Parameters
    ----------
    texts
        Episodes, context, titles, and the names of the speakers and of what is known.
    turns
        Turns that dates in names may refer to: a date near their days needs no ground ("last night" is "14 September
        2025"), and one that they tell may have another form ("2026-03-20" for "20 March").
    facts
        Sentences of known facts. A name may have words that no text has from one of them, in the same form.
    """

    def __init__(self, texts: Iterable[str], turns: Iterable[Episode] = (), facts: Iterable[str] = ()) -> None:
        self._turns = tuple(turns)
        self._facts = [frozenset(words(plain_amounts(fact))) for fact in facts]
        texts = list(texts)
        sequences = [words(plain_amounts(text)) for text in texts]
        self._texts = texts
        occurring = {word for sequence in sequences for word in sequence}
        currencies = {
            code
            for code, (sign, *others) in _CURRENCIES.items()
            if not occurring.isdisjoint((code, *others)) or any(sign in text for text in texts)
        }
        occurring |= currencies or _CURRENCIES.keys()  # without any a model may know which one is meant
        occurring |= {name for name in _CALENDAR if not occurring.isdisjoint((name[:3], name[:4]))}  # "mon to thurs"
        self._words = frozenset(occurring)
        pairs = (pair for sequence in sequences for pair in pairwise(sequence) if all(map(str.isalpha, pair)))
        self._pairs = frozenset("".join(pair) for pair in pairs if pair[1] not in STOP_WORDS)  # not Paula in "Paul a"
        self._stems = frozenset(stem(word) for word in self._words)
        spelled = (number for sequence in sequences for number in spelled_numbers(sequence))
        numbers = {number for word in (*self._words, *spelled) for number in _NUMBER.findall(word)}
        numbers |= {thousands(match) for text in texts for match in _DECIMAL.finditer(text)}
        numbers |= {str(int(match[1]) % 12 + 12) for text in texts for match in _AFTERNOON.finditer(text)}
        years = {match[1] for text in texts for match in _SHORT_YEAR.finditer(text)}
        self._numbers = numbers | {f"{century}{year}" for year in years for century in (19, 20)}
        short = (match for word in self._words if (match := _NUMERONYM.fullmatch(word)))
        self._numeronyms = frozenset((match[1], int(match[2]) + 2, match[3]) for match in short)
        self._marked = frozenset(token for text in texts for token in _SHORT_NAME.findall(text))
        initials = (found.replace(".", "") for text in texts for found in _INITIALS.findall(text))
        self._initials = frozenset(found for found in initials if found.lower() not in _NO_NAMES)
        self._phrases = "\n".join(f" {' '.join(sequence)} " for sequence in sequences)
        self._joined = "\n".join("".join(sequence) for sequence in sequences)

    @classmethod
    def of(cls, requests: Sequence[ExtractionRequest], speakers: Iterable[str]) -> Grounds:
        """Return the grounds for the requests of a call and their speakers."""
        told = (text for r in requests for text in (r.episode.text, r.episode.title or ""))
        known = requests[0].known
        names = (name for entity in known.names for name in (entity.name, *entity.aliases))
        ends = (name for fact in known.facts for name in (fact.source, fact.target))
        turns = [*requests[0].context, *(request.episode for request in requests)]
        days = {turn.local_time.date() for turn in turns}
        months = {f"{day:%A %B %Y}" for day in days}  # names may tell the month: "budget of May 2025"
        texts = [*told, *(turn.text for turn in requests[0].context), *names, *ends, *speakers, *months, _SEASONS]
        return cls(texts, turns, (fact.fact for fact in known.facts))

    def has(self, name: str, *, initials: bool = False) -> bool:
        """Return whether the texts contain a name: all its words that aren't fillers, or the whole name if all are.

        Common nouns may have another form than in the texts ("exhaustion" for "exhausted"), amounts another notation
        ("40,000 EUR" for "€40k"), as may dates ("2026-03-20" for "20 March"); dates near the turns need no ground. The
        texts may have a short form of a word: "k8s" for "Kubernetes", "rabbit" for "RabbitMQ", or one word for two:
        "vscode" for "VS Code"; with `initials` also those of the name: "US" for "United States". Words in other scripts
        than Latin may be inflected, and in scripts without spaces a name may begin and end anywhere.
        """
        name = plain_amounts(name)
        parts = words(self._undated(name)) or words(name)
        if not parts:  # a symbol, such as an emoji
            return bool(name.strip()) and any(name.strip() in text for text in self._texts)
        if UNSPACED.search(name) and "".join(parts) in self._joined:
            return True
        content = [part for part in parts if part not in FILLERS]
        if len(parts) == 2 and "".join(parts) in self._words:
            return True
        if initials and any("".join(part[0] for part in some).upper() in self._initials for some in (parts, content)):
            return True
        if content:
            nouns = set(words(" ".join(word for word in name.split() if word.islower())))
            missing = {part for part in content if not self._has_word(part, noun=part in nouns)}
            return not missing or any(missing <= fact for fact in self._facts)
        return f" {' '.join(parts)} " in self._phrases

    def has_name(self, name: str, *, initials: bool = False) -> bool:
        """Return whether the texts contain a name, also one with words that tell it apart: "Tom (Ann's brother)"."""
        base, _, told_apart = name.removesuffix(")").partition(" (")
        if told_apart and name.endswith(")") and self.has(base) and self.has_proper(told_apart):
            return True
        return self.has(name, initials=initials) or self.has_proper(name, whole=True)

    def has_proper(self, name: str, *, whole: bool = False) -> bool:
        """Return whether the texts contain the capitalized words and the numbers of a name, apart from dates.

        A date is accepted without being in the texts, since a model may compute it from a phrase such as "three weeks
        from today". With `whole`, a date must be in the texts or near the date of a turn, and at least one word of the
        name must be in the texts.
        """
        undated = self._undated(name) if whole else _DATE.sub(" ", name)
        proper = " ".join(word for word in undated.split() if not word.islower())
        if proper:
            return self.has(proper)
        return not whole or any(self._has_word(word, noun=True) for word in words(name) if word not in FILLERS)

    def _undated(self, name: str) -> str:
        """Return a name without the dates that the texts have or that are near those of the turns."""

        def kept(match: re.Match[str]) -> str:
            found = find_dates(match[0], datetime.now(UTC))
            return " " if any(self._is_near(one) or self._is_told(one) for one in found) else match[0]

        return _DATE.sub(kept, name)

    def _is_near(self, named: DateSpan) -> bool:
        return any(abs(turn.local_time.date() - named.begin.date()) <= _NEAR for turn in self._turns)

    def _is_told(self, named: DateSpan) -> bool:
        """Return whether the texts have a date within one of a name, which may be less precise."""
        begin, end = named.begin.date(), named.until.date()
        return any(begin <= one.begin.date() and one.until.date() <= end for one in self._dates)

    @cached_property
    def _dates(self) -> tuple[DateSpan, ...]:
        """The dates in the turns; a bare one may be the latest or the next."""
        return tuple(
            span
            for turn in self._turns
            for future in (False, True)
            for span in find_dates(turn.text, turn.local_time, future=future)
        )

    def tells_of_names(self, name: str, other: str) -> bool:
        """Return whether a sentence of the turns tells that two names are of one thing, or the turns aren't English.

        It has a word such as "renamed" or "called" and a word that only one of the names has, or only words such as "is
        now" between both, or one of them in parentheses.
        """
        names = words(name), words(other)
        apart = set(names[0]) ^ set(names[1])
        for sentence, told in self._sentences:
            if not apart.isdisjoint(told) and any(w in _NAMING or w.startswith(_NAMING_BEGINNINGS) for w in told):
                return True
            in_brackets = f"({name})" in sentence or f"({other})" in sentence
            if in_brackets and all(apart.intersection(told, each) for each in names):
                return True
            if _are_joined(told, *names) or _are_joined(told, *reversed(names)):
                return True
        return all(_ENGLISH.isdisjoint(told) for _, told in self._sentences)

    @cached_property
    def _sentences(self) -> tuple[tuple[str, list[str]], ...]:
        """The sentences of the turns, each with its words."""
        found = (sentence for turn in self._turns for sentence in _SENTENCES.findall(turn.text))
        return tuple((sentence, words(sentence)) for sentence in found)

    def has_short(self, name: str) -> bool:
        """Return whether the texts contain a number, such as "5%", or a name of two characters: AC, S3, Jo."""
        if any(character.isdigit() for character in name) and self.has(name):
            return True
        return name in self._marked and name.lower() not in STOP_WORDS | _NO_NAMES

    def _has_word(self, word: str, *, noun: bool) -> bool:
        if word in self._words or word in self._pairs or ((noun or not word.isascii()) and stem(word) in self._stems):
            return True
        if UNSPACED.fullmatch(word):
            return word in self._joined
        if not self._words.isdisjoint((f"{word}s", f"{word}ss")):  # "st jamess" for "St James's"
            return True
        if word.isdigit():  # "forty" may stand for 40,000
            short = (word.removesuffix(zeros) for zeros in ("", "000", "000000"))
            return any(number in self._numbers for number in short)
        if not self._numeronyms.isdisjoint((each[0], len(each), each[-1]) for each in (word, f"{word}s")):
            return True
        return any(word[:end] in self._words for end in range(_SHORT_FORM, len(word)))


def _are_joined(told: Sequence[str], one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether a sentence has a name, then another one, and only words such as "is now" between both."""
    ends = [i + len(one) for i in range(len(told)) if list(told[i : i + len(one)]) == list(one)]
    for end in ends:
        rest = next((i for i in range(end, len(told)) if told[i] not in _BETWEEN_NAMES), len(told))
        if rest > end and list(told[rest : rest + len(other)]) == list(other):
            return True
    return False


_NAMING = frozenset(
    "aka alias became become becoming call called calling dubbed fka former formerly known name named originally "
    "previously same short stand".split()
)
_NAMING_BEGINNINGS = ("renam", "rebrand", "nicknam")
_BETWEEN_NAMES = frozenset("actually are be is just new now old really simply the was".split())
_ENGLISH = frozenset("and our the they with".split())
_SENTENCES = re.compile(r"[^.!?\n]+")
