"""The Cypher of graphmem: migrations and parameterized queries, each in a file of its own.

``/* include NAME */`` in a query is replaced by the text of ``fragments/NAME.cypher``. Both are constants of the
package; no outside input ever becomes part of a query.

All parameters of a query are in one map, ``$q``. The server makes a plan for each combination of parameter types, and
an absent filter is null: with separate parameters a query for facts would be planned again, at a tenth of a second or
more, for each combination of filters.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import LiteralString, cast

__all__ = ["migrations", "queries", "query", "saved", "style"]

_INCLUDE = re.compile(r"/\* include (\w+) \*/")
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)


@cache
def query(name: str) -> LiteralString:
    """Return the text of ``queries/NAME.cypher`` with its fragments inserted and its comments removed."""
    return cast("LiteralString", _included(_text("queries", name)))


@cache
def locked(name: str) -> LiteralString:
    """Return the text of a query that first locks the scopes in ``$q.lock``; its rows are one list, unordered."""
    lock, fence = (_included(_text("fragments", part)) for part in ("lock", "fence"))
    return cast("LiteralString", f"{lock}\n{fence}\n{in_one(name)}")


@cache
def in_one(name: str) -> LiteralString:
    """Return the text of a query that returns all rows as one list, unordered: a record costs more than a row."""
    return "\n".join(("CALL () {", query(name), "}", "RETURN collect(row) AS row"))


@cache
def collected(name: str) -> LiteralString:
    """Return the text of a query without unions that returns all rows as one list, in one record."""
    head, _, row = query(name).rstrip().rpartition("RETURN ")
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


def _included(text: str) -> str:
    return _INCLUDE.sub(lambda found: _included(_text("fragments", found[1])), text)


def _text(folder: str, name: str) -> str:
    text = files(__name__).joinpath(folder, f"{name}.cypher").read_text(encoding="utf-8")
    return _COMMENT.sub("", text).strip()
