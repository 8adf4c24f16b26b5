"""How fast `search` is as the memory grows, and how fast texts come in: conversations and passages mixed.

    python tests/bench/search.py [--sizes 1000,10000,100000] [--folder FOLDER] [--only search|ingest]

The turns of LoCoMo and the passages of MuSiQue, and copies of them in which every capitalised word has another name, so
that names grow with the memory as they do in real ones. A model that costs nothing stands in for the embeddings (a
fixed vector for each word): what is timed is graphmem. Each size is searched in one scope, in fifty that are searched
together, and in one of the fifty. A folder keeps the stores for the next run. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import count, islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import locomo
import numpy as np
from numpy.typing import NDArray

from graphmem import Document, GraphMemory, Turn
from graphmem.embed import TokenVectors
from graphmem.models import Scope

DATA = locomo.DATA.parent
PASSAGES = DATA / "musique_passages_openie.jsonl"
NAMES = DATA / "locomo_dev_entities_gpt35.jsonl"
DIMENSION = 384
SCOPES = 50
QUESTIONS = 100
CAPITALISED = re.compile(r"\b[A-Z][a-z]{2,}\b")
SYLLABLES = "ba ce di fo gu ka le mi no pu ra se ti vo xu za".split()

Vectors = NDArray[np.float32]


class Words:
    """A model without cost: a fixed vector for each word, their mean for a text."""

    model_name = "bench-words"
    dimension = DIMENSION

    @lru_cache(maxsize=200_000)  # noqa: B019 - one model for the whole run
    def _word(self, word: str) -> Vectors:
        row = np.random.default_rng(zlib.crc32(word.encode())).standard_normal(DIMENSION)
        return (row / np.linalg.norm(row)).astype(np.float32)

    def embed_tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the vectors of the words of each text."""
        return [self._read(text) for text in texts]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the mean of the words' vectors of each text."""
        return [self._read(text).pooled.tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the mean of the words' vectors."""
        return self._read(text).pooled.tolist()

    def _read(self, text: str) -> TokenVectors:
        found = list(re.finditer(r"\w+", text))
        words = tuple(match[0].lower() for match in found)
        rows = np.stack([self._word(word) for word in words]) if words else np.zeros((0, DIMENSION), np.float32)
        pooled = rows.mean(axis=0) if words else self._word("")
        spans = np.array([match.span() for match in found], np.int64).reshape(-1, 2)
        return TokenVectors(words, rows, spans, (pooled / np.linalg.norm(pooled)).astype(np.float32))


def renamed(text: str, copy: int) -> str:
    """Return a text with other names in it: those of the copy."""
    if not copy:
        return text
    ending = SYLLABLES[copy % 16] + SYLLABLES[copy // 16 % 16]
    return CAPITALISED.sub(lambda word: word[0] + ending, text)


def conversations() -> list[dict[str, Any]]:
    """Return LoCoMo's."""
    return json.loads(locomo.DATA.read_text("utf-8"))


def passages() -> list[dict[str, Any]]:
    """Return MuSiQue's, with their triples."""
    return [json.loads(line) for line in PASSAGES.read_text("utf-8").splitlines()]


def texts() -> Iterator[Turn | Document]:
    """Yield turns and passages in turns of one session and as many passages, without end."""
    talks, read = conversations(), passages()
    for copy in count():
        pages = iter(read)
        for number, talk in enumerate(talks):
            said = locomo.turns(talk)
            for session in dict.fromkeys(turn.session_id for turn in said):
                of_session = [turn for turn in said if turn.session_id == session]
                for turn in of_session:
                    named = {"text": renamed(turn.text, copy), "speaker": renamed(turn.speaker or "", copy)}
                    ids = {
                        "session_id": f"{copy}-{number}-{session}",
                        "external_id": f"{copy}-{number}-{turn.external_id}",
                    }
                    yield turn.model_copy(update={**named, **ids})
                for page in islice(pages, len(of_session)):
                    yield Document(title=renamed(page["title"], copy), text=renamed(page["text"], copy))


def questions(copies: int) -> list[str]:
    """Return questions about conversations and about passages, each about the names of some copy."""
    of_talks = [question.question for talk in conversations() for question in locomo.questions(talk)]
    rows = json.loads((DATA / "musique_dev_questions.json").read_text("utf-8"))
    both = [*of_talks[:: max(1, 2 * len(of_talks) // QUESTIONS)], *(row["question"] for row in rows)]
    return [renamed(question, n % copies) for n, question in enumerate(both[:QUESTIONS])]


def opened(path: Path) -> GraphMemory:
    """Open a store with the model that costs nothing."""
    return GraphMemory.open(f"sqlite:///{path.as_posix()}", extractor="none", embeddings=Words(), background=False)


def fill(path: Path, size: int, scopes: int) -> float:
    """Bring a store to a size; return texts a second. A session and as many passages stay in one scope."""
    begun = time.perf_counter()
    with opened(path) as memory:
        have = sum(memory.in_scope(f"s{n}").stats().episodes for n in range(scopes))
        waiting = islice(texts(), have, size)
        for start in range(have, size, 1000):
            groups: dict[str, list[Turn | Document]] = {}
            for place, text in enumerate(islice(waiting, 1000), start):
                groups.setdefault(f"s{place // 200 % scopes}", []).append(text)
            for scope, group in groups.items():
                memory.in_scope(scope).ingest(group)
    return (size - have) / (time.perf_counter() - begun)


def asked(memory: GraphMemory, scopes: list[Scope], size: int) -> dict[str, float]:
    """Return the first search's seconds, and the median and the 95th percentile of the others in ms."""
    ask = questions(max(1, size // 3900))
    begun = time.perf_counter()
    memory.search(ask[0], scopes=scopes)
    cold = time.perf_counter() - begun
    for question in ask:  # a model has read them then
        memory.search(question, scopes=scopes)
    taken: list[float] = []
    for question in ask:
        begun = time.perf_counter()
        memory.search(question, scopes=scopes)
        taken.append(1000 * (time.perf_counter() - begun))
    cuts = statistics.quantiles(taken, n=20)
    return {"p50_ms": round(cuts[9], 1), "p95_ms": round(cuts[18], 1), "first_s": round(cold, 2)}


def searched(folder: Path, sizes: list[int]) -> dict[str, Any]:
    """Measure searches in stores of all sizes."""
    found: dict[str, Any] = {}
    for size in sizes:
        for scopes in (1, SCOPES):
            path = folder / f"{size}-{scopes}.db"
            rate = fill(path, size, scopes)
            every = [Scope(f"s{n}") for n in range(scopes)]
            layouts = {f"{scopes} scopes together": every} if scopes > 1 else {"one scope": every}
            if scopes > 1:
                layouts["one of 50 scopes"] = every[:1]
            for layout, those in layouts.items():
                with opened(path) as memory:
                    row = asked(memory, those, size)
                row["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
                found[f"{size}, {layout}"] = {**row, "ingest_per_s": round(rate)}
                print(f"{size:7} {layout:20}", found[f"{size}, {layout}"], flush=True)
    return found


def ingested(folder: Path) -> dict[str, Any]:
    """Measure how many texts a second come in without a model, with the index that `search` needs and apart from it."""
    found: dict[str, Any] = {}
    said = [
        turn.model_copy(update={"external_id": f"{talk['sample_id']}/{turn.external_id}"})
        for talk in conversations()
        for turn in locomo.turns(talk)
    ]
    pages = [Document(title=p["title"], text=p["text"]) for p in passages()]
    names = folder / "names.jsonl"
    names.write_text("".join(_named(json.loads(line)) for line in NAMES.read_text("utf-8").splitlines()), "utf-8")
    for name, extractor, items in (
        ("turns, spaCy", "spacy", said),
        ("turns, recorded names", f"recorded:{names}", said),
        ("passages, recorded triples", f"recorded:{PASSAGES}", pages),
    ):
        rates: list[float] = []
        apart: list[float] = []
        for n in range(3):
            url = f"sqlite:///{(folder / f'{name}-{n}.db').as_posix()}"
            with GraphMemory.open(url, extractor=extractor, embeddings="none", background=False) as memory:
                memory.ingest(items[:5])  # loads what has to be loaded
                begun = time.perf_counter()
                report = memory.ingest(items[5:])
                rates.append(report.extracted / (time.perf_counter() - begun))
                apart.append(report.extracted / report.seconds)
        found[f"ingest {name}"] = {
            "texts": len(items),
            "per_s": round(statistics.median(rates)),
            "per_s_apart_from_the_index": round(statistics.median(apart)),
        }
        print(name, found[f"ingest {name}"], flush=True)
    return found


def _named(turn: dict[str, Any]) -> str:
    names = [entity["name"] for entity in turn["entities"]]
    return json.dumps({"external_id": f"{turn['sample_id']}/{turn['dia_id']}", "entities": names}) + "\n"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", choices=("search", "ingest"))
    given = parser.parse_args()
    found: dict[str, Any] = {"load": round(os.getloadavg()[0], 1)}
    with tempfile.TemporaryDirectory() as temporary:
        folder: Path = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if given.only != "search":
            found |= ingested(Path(temporary))
        if given.only != "ingest":
            found |= searched(folder, [int(size) for size in given.sizes.split(",")])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
