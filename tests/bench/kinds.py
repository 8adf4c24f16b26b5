"""Data sets for tests/bench/recall.py: BEAM, REALTALK, LoCoMo and MuSiQue as items of scopes and questions.

Others only check what was developed on these: QMSum (Zhong et al., NAACL 2021), the files of data/ALL/val of its
repository in the folder `qmsum` of the data; COVID-QA (Möller et al., 2020), its file as `covid_qa.json`; and XQuAD
(Artetxe et al., ACL 2020), a file for each language in the folder `xquad`: the sets `xquad.de`, `xquad.zh` ….
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
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

_MEETING = datetime(2025, 3, 3, 10, tzinfo=UTC)


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


def qmsum_data() -> Data:
    """Return QMSum: each meeting is a scope; the turns of more than three words in the spans of a query answer it."""
    items: Items = {}
    asked: list[Asked] = []
    for file in sorted((DATA / "qmsum").glob("*.json")):
        meeting, scope = json.loads(file.read_text("utf-8")), f"qmsum/{file.stem}"
        turns = meeting["meeting_transcripts"]
        items[scope] = [
            {
                "text": turn["content"] or ".",
                "speaker": turn["speaker"],
                "external_id": str(number),
                "session_id": file.stem,
                "occurred_at": _MEETING + timedelta(seconds=8 * number),
            }
            for number, turn in enumerate(turns)
        ]
        for query in meeting["specific_query_list"]:
            inside = (n for span in query["relevant_text_span"] for n in range(int(span[0]), int(span[1]) + 1))
            gold = frozenset(str(n) for n in inside if n < len(turns) and len(turns[n]["content"].split()) > 3)
            if gold:
                asked.append(Asked(query["query"], (scope,), gold, query["query"].split()[0].lower()))
    return Data(items, asked)


def covid_data(questions: int = 400) -> Data:
    """Return COVID-QA: the paragraphs of all papers in one scope, and some questions that they answer."""
    paragraphs: list[dict[str, str]] = []
    asked: list[Asked] = []
    articles = json.loads((DATA / "covid_qa.json").read_text("utf-8"))["data"]
    for paper in (paper for article in articles for paper in article["paragraphs"]):
        at, places = 0, list[tuple[int, int, str]]()
        texts = paper["context"].split("\n")
        title = next(text.strip()[:100] for text in texts if len(text.strip()) > 40)
        for text in texts:
            if len(text.strip()) > 40:
                places.append((at, at + len(text), str(len(paragraphs))))
                paragraphs.append({"text": text.strip(), "title": title, "external_id": str(len(paragraphs))})
            at += len(text) + 1
        for question in paper["qas"]:
            starts = [answer["answer_start"] for answer in question["answers"]]
            gold = frozenset(key for begin, end, key in places if any(begin <= start < end for start in starts))
            if gold:
                asked.append(Asked(question["question"], ("covid",), gold, "all"))
    random.Random(1).shuffle(asked)
    return Data({"covid": paragraphs}, asked[:questions])


def xquad_data(name: str, questions: int = 400) -> Data:
    """Return XQuAD in one language: all paragraphs in one scope, and some questions, each answered by one of them."""
    items: Items = {name: []}
    asked: list[Asked] = []
    articles = json.loads((DATA / "xquad" / f"{name}.json").read_text("utf-8"))["data"]
    for number, paragraph in enumerate(one for article in articles for one in article["paragraphs"]):
        items[name].append({"text": paragraph["context"], "external_id": str(number)})
        asked += [Asked(each["question"], (name,), frozenset({str(number)}), "all") for each in paragraph["qas"]]
    random.Random(1).shuffle(asked)
    return Data(items, asked[:questions])


def load(name: str) -> Data:
    """Return a data set by its name in the table."""
    if name.startswith("xquad."):
        return xquad_data(name)
    if name == "musique":
        return musique_data()
    if name == "qmsum":
        return qmsum_data()
    if name == "covid":
        return covid_data()
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
