"""The Cypher of graphmem: migrations and parameterized queries, each in a file of its own.

``/* include NAME */`` in a query is replaced by the text of ``fragments/NAME.cypher``. The part between
``/* if NAME */`` and ``/* end */`` is left out unless a call gives the parameter of that name, so that the server plans
the filters of the call only; a new server needs seconds for all of them. All texts are constants of the package; no
outside input ever becomes part of a query.

All parameters of a query are in one map, ``$q``: with separate parameters, the server would make a plan for each
combination of their types.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import LiteralString, cast

__all__ = ["given", "migrations", "optional_parts", "queries", "query", "saved", "schema", "style"]

_INCLUDE = re.compile(r"/\* include (\w+) \*/")
_PART = re.compile(r"/\* if (\w+) \*/(.*?)/\* end \*/", re.DOTALL)
_BLANK_LINES = re.compile(r"\n\s*\n")
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)


@cache
def query(name: str, parts: frozenset[str] = frozenset()) -> LiteralString:
    """Return the text of ``queries/NAME.cypher`` with its fragments and some optional parts, without comments."""
    text = _PART.sub(lambda found: found[2] if found[1] in parts else "", _whole(name))
    return cast("LiteralString", _BLANK_LINES.sub("\n", text))


@cache
def optional_parts(name: str) -> frozenset[str]:
    """Return the names of the optional parts of a query."""
    return frozenset(found[1] for found in _PART.finditer(_whole(name)))


def given(name: str, values: Mapping[str, object]) -> frozenset[str]:
    """Return the optional parts of a query that a call with some parameters needs: those neither null nor false."""
    parts = optional_parts(name)
    if not parts:
        return parts
    return frozenset(part for part in parts if (value := values.get(part)) is not None and value is not False)


@cache
def locked(name: str, parts: frozenset[str] = frozenset()) -> LiteralString:
    """Return the text of a query that first locks the scopes in ``$q.lock``; its rows are one list, unordered."""
    lock, fence = (_included(_text("fragments", part)) for part in ("lock", "fence"))
    return cast("LiteralString", f"{lock}\n{fence}\n{in_one(name, parts)}")


@cache
def in_one(name: str, parts: frozenset[str] = frozenset()) -> LiteralString:
    """Return the text of a query that returns all rows as one list, unordered: a record costs more than a row."""
    return "\n".join(("CALL () {", query(name, parts), "}", "RETURN collect(row) AS row"))


@cache
def collected(name: str, parts: frozenset[str] = frozenset()) -> LiteralString:
    """Return the text of a query without unions that returns all rows as one list, in one record."""
    head, _, row = query(name, parts).rstrip().rpartition("RETURN ")
    return f"{head}RETURN collect({row.removesuffix(' AS row')}) AS row"


def queries() -> list[str]:
    """Return the names of all queries."""
    folder = files(__name__).joinpath("queries")
    return sorted(file.name.removesuffix(".cypher") for file in folder.iterdir() if file.name.endswith(".cypher"))


@cache
def migrations() -> dict[int, tuple[str, tuple[LiteralString, ...]]]:
    """Return number → (name, statements) of the migrations of this version."""
    found: dict[int, tuple[str, tuple[LiteralString, ...]]] = {}
    for file in files(__name__).joinpath("migrations").iterdir():
        if file.name.endswith(".cypher"):
            whole = file.name.removesuffix(".cypher")
            number, _, name = whole.partition("_")
            statements = (part.strip() for part in _text("migrations", whole).split(";"))
            found[int(number)] = (name, tuple(cast("LiteralString", text) for text in statements if text))
    return dict(sorted(found.items()))


@cache
def saved() -> dict[str, str]:
    """Return name → text of the queries for Neo4j Browser, with comments: the first line is the title there."""
    folder = files(__name__).joinpath("saved")
    found = {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith(".cypher")}
    return {name.removesuffix(".cypher"): text for name, text in sorted(found.items())}


@cache
def style() -> str:
    """Return the style sheet for Neo4j Browser: the looks and captions of nodes and relationships."""
    return files(__name__).joinpath("style.grass").read_text(encoding="utf-8")


@cache
def schema() -> str:
    """Return the description of the graph for a language model that writes Cypher: its schema, rules and examples."""
    return files(__name__).joinpath("schema.txt").read_text(encoding="utf-8")


@cache
def _whole(name: str) -> str:
    return _included(_text("queries", name))


def _included(text: str) -> str:
    return _INCLUDE.sub(lambda found: _included(_text("fragments", found[1])), text)


def _text(folder: str, name: str) -> str:
    text = files(__name__).joinpath(folder, f"{name}.cypher").read_text(encoding="utf-8")
    return _COMMENT.sub("", text).strip()
