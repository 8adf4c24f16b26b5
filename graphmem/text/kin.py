"""Nouns for persons by relationship, such as "brother" or "ex-wife", read from kin.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

_TABLES: Mapping[str, Any] = tomllib.loads(files("graphmem.text").joinpath("kin.toml").read_text(encoding="utf-8"))

KIN_PREFIXES: tuple[str, ...] = (*_TABLES["prefixes"], "")
PLAIN_KIN: Mapping[str, str] = {
    word: "" if gender == "either" else gender for gender, words in _TABLES["kin"].items() for word in words.split()
}
"""Nouns for persons by relationship → their gender, if the noun implies it."""
KIN: Mapping[str, str] = {
    f"{prefix}{word}{law}": gender
    for word, gender in PLAIN_KIN.items()
    for prefix in KIN_PREFIXES
    for law in ("", "-in-law", " in law")
}
"""The same with what is made of them: "ex-wife", "brother-in-law"."""


def has(noun: str) -> str:
    """Return the relation of having something: "has_brother_in_law" for "brother-in-law"."""
    return f"has_{noun.replace(' ', '_').replace('-', '_')}"
