"""Data sets for tests/bench/recall.py: BEAM, REALTALK, LoCoMo and MuSiQue as items of scopes and questions."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import locomo
import musique

DATA = Path(os.environ.get("GRAPHMEM_DATA", Path(__file__).parents[3] / "shared" / "data"))
KINDS = ("beam", "realtalk", "locomo", "musique")
SETS = ("beam", "realtalk", "locomo", "locomo-no-captions", "musique", "mixed")
PREFIX = {"beam": "beam100k", "realtalk": "realtalk"}
FILES = (
    "locomo_dev.json",
    "musique_passages_openie.jsonl",
    *(f"{prefix}_dev_turns.jsonl" for prefix in PREFIX.values()),
)

Items = dict[str, list[Any]]


@dataclass(frozen=True)
class Asked:
    """A question, the scopes to ask it in, and the external ids that answer it."""

    question: str
    scopes: tuple[str, ...]
    answers: frozenset[str]
    category: str


@dataclass(frozen=True)
class Data:
    """A data set: the items of each scope, and the questions."""

    items: Items
    asked: list[Asked]


def lines(name: str) -> list[dict[str, Any]]:
    """Return the objects of a file of the data."""
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


def chats(name: str) -> Data:
    """Return a data set whose turns and questions name their chat."""
    items: Items = {}
    for turn in lines(f"{PREFIX[name]}_dev_turns.jsonl"):
        items.setdefault(f"{name}/{turn.pop('scope')}", []).append(turn)
    rows = lines(f"{PREFIX[name]}_dev_questions.jsonl")
    return Data(items, [_asked(row["question"], f"{name}/{row['scope']}", row) for row in rows])


def _asked(question: str, scope: str, row: Mapping[str, Any]) -> Asked:
    return Asked(question, (scope,), frozenset(row["external_ids"]), str(row["category"]))


def locomo_data(*, captions: bool) -> Data:
    """Return LoCoMo, with or without the captions of photos."""
    talks: list[Mapping[str, Any]] = json.loads((DATA / "locomo_dev.json").read_text("utf-8"))
    names = [locomo.scope_of(talk).replace("locomo", "locomo" if captions else "locomo-no-captions") for talk in talks]
    items: Items = {name: list(locomo.turns(talk, captions=captions)) for name, talk in zip(names, talks, strict=True)}
    asked = [(q, name) for name, talk in zip(names, talks, strict=True) for q in locomo.questions(talk)]
    return Data(items, [_asked(q.question, name, q.model_dump()) for q, name in asked])


def musique_data() -> Data:
    """Return MuSiQue: all passages in one scope."""
    passages = lines("musique_passages_openie.jsonl")
    rows = json.loads((DATA / "musique_dev_questions.json").read_text("utf-8"))
    asked = [_asked(q.question, "musique", q.model_dump()) for q in musique.questions(rows, passages)]
    return Data({"musique": list(musique.documents(passages))}, asked)


def load(name: str) -> Data:
    """Return a data set by its name in the table."""
    if name == "musique":
        return musique_data()
    if name.startswith("locomo"):
        return locomo_data(captions=name == "locomo")
    return chats(name)


def mixed(sets: Mapping[str, Data]) -> list[Asked]:
    """Return all questions, each asked in one conversation of each kind and all passages."""
    scopes = {name: list(sets[name].items) for name in KINDS}
    found: list[Asked] = []
    for name, of_set in scopes.items():
        for one in sets[name].asked:
            place = of_set.index(one.scopes[0])
            others = tuple(theirs[place % len(theirs)] for other, theirs in scopes.items() if other != name)
            found.append(Asked(one.question, (*one.scopes, *others), one.answers, name))
    return found
