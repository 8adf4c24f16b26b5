"""Search for names in texts, tolerant of spelling variants. Pure functions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from graphmem.text.normalize import clean

_SHORTEST = 3  # minimum letters of a name matched in any letter case
_INFLECTED = 4  # minimum letters of a name that may have an ending
_BETWEEN = r"[\s_.\-]{1,3}"
_BEFORE, _AFTER = r"(?<![^\W_])", r"(?![^\W_])"
# scripts without spaces between words or with joined endings: Thai to Khmer, Hangul, kana, Han
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]"
)


def folded(text: str) -> str:
    """Return a text in one letter case, without accents and invisible characters."""
    if not text.isascii():
        text = clean(text, 4 * len(text.encode()))
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return text.casefold()


class NameFinder:
    """Finder of names as whole words, ignoring letter case and accents.

    A name also matches with a possessive or plural ending ("Maya's", "Mayas"), and with an underscore, hyphen or dot
    instead of a space. A name of fewer than three letters matches only in its exact form, since "it" is not "IT". In
    scripts without spaces between words, such as Chinese, a name matches anywhere in the text.

    Parameters
    ----------
    names
        The names, in any form.
    """

    def __init__(self, names: Iterable[str]) -> None:
        forms = {name for name in names if name.strip()}
        loose = {f for name in forms if len(f := folded(name).strip()) >= _SHORTEST or (len(f) > 1 and _is_unspaced(f))}
        short = {name.strip() for name in forms if folded(name).strip() not in loose}
        self._loose = _pattern(loose)
        self._exact = _pattern({name for name in short if len(name) > 1 and not name.islower()})

    def found_in(self, text: str | None) -> bool:
        """Return whether a text contains one of the names."""
        if not text:
            return False
        if self._loose is not None and self._loose.search(folded(text)) is not None:
            return True
        return self._exact is not None and self._exact.search(text) is not None


def _pattern(names: Iterable[str]) -> re.Pattern[str] | None:
    forms = [_form(name) for name in sorted(names, key=lambda name: (-len(name), name))]
    return re.compile("|".join(forms)) if forms else None


def _form(name: str) -> str:
    words = _BETWEEN.join(re.escape(word) for word in re.split(r"\s+", name))
    if _is_unspaced(name):
        return words
    ending = r"(?:['’]?s|es)?" if len(name) >= _INFLECTED else ""
    return f"{_BEFORE}{words}{ending}{_AFTER}"


def _is_unspaced(name: str) -> bool:
    return _UNSPACED.search(name) is not None


_NO_LETTERS = re.compile(r"[^\w ]|_")


_BRACKETS = re.compile(r" ?\([^)\n]{0,300}\)")


_LONGEST_TITLE = 300


def plain(text: str) -> str:
    """Return a text normalized for comparing names: lower case, letters and digits, single spaces."""
    return " ".join(_NO_LETTERS.sub(" ", text.lower()).split())


def bare_title(title: str) -> str:
    """Return a title as a normalized name: its first 300 characters without text in parentheses."""
    title = title[:_LONGEST_TITLE]
    return plain(_BRACKETS.sub("", title)) or plain(title)
