"""Recall of every kind of memory in one table: BEAM, REALTALK, LoCoMo, MuSiQue, and all four in one memory.

    python tests/bench/recall.py [--sets beam,realtalk,…] [--extractor NAME] [--embeddings NAME]
        [--context] [--save FILE] [--against FILE]

A conversation is a scope; `mixed` asks every question in one conversation of each kind and all passages together. The
set with the lowest recall@10 stands first. Built memories are kept under build/bench, by data, code of the index and
model, with the rankings of the baselines: a change of scoring costs only the queries. `--save` writes the scores of
each question, `--against` compares with such a file. See docs/concepts/search.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))

from kinds import DATA, FILES, KINDS, SETS, Asked, Items, load, mixed

from graphmem import Episode, ExpansionConfig, GraphMemory, Scope
from graphmem.search.baselines import BASELINES, Baseline
from graphmem.search.evaluation import interval, recall_at, reciprocal_rank
from graphmem.text.terms import terms

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "bench"
DEPTH = 50
MEASURES = ("@5", "@10", "@25", "all@10", "any@10", "MRR")
METHODS = ("full", "no graph", *BASELINES)
AT_10 = MEASURES.index("@10")
BUDGETS = (300, 800, 2000)
SENTENCE = re.compile(r"[^.!?\n]*\w[^.!?\n]*[.!?]*")

Floats = NDArray[np.float64]
Scores = dict[str, dict[str, list[list[float]]]]


def fingerprint(extractor: str, embeddings: str) -> str:
    """Return a hash of what built memories depend on."""
    folders = ("index", "embed", "text") if extractor == "none" else ("index", "embed", "text", "ingest")
    code = [file for folder in folders for file in sorted((ROOT / "graphmem" / folder).rglob("*.py"))]
    hashed = hashlib.sha256(f"{extractor} {embeddings}".encode())
    for file in [*code, *(DATA / name for name in FILES)]:
        hashed.update(file.read_bytes())
    return hashed.hexdigest()[:12]


class Built:
    """Cache of built memories: one store with a scope for each conversation, and a file of metadata."""

    def __init__(self, extractor: str, embeddings: str = "auto") -> None:
        key = fingerprint(extractor, embeddings)
        BUILD.mkdir(parents=True, exist_ok=True)
        self._file = BUILD / f"{key}.json"
        self._notes = self._read()
        self.memory = GraphMemory.open(
            f"sqlite:///{(BUILD / key).as_posix()}.db",
            extractor=extractor,
            embeddings=embeddings,
            background=False,
            embedding_timeout=300.0,  # a busy machine must not change the figures
        )
        self._engine = self.memory._engine  # pyright: ignore[reportPrivateUsage] # the baselines aren't public

    def build(self, items: Items) -> tuple[float, int]:
        """Ingest what isn't there yet; return the seconds that it took once, and the number of characters."""
        seconds = 0.0
        for scope, texts in items.items():
            if f"built {scope}" not in self._notes:
                begun = time.perf_counter()
                self.memory.in_scope(scope).ingest(texts)
                self._keep(f"built {scope}", time.perf_counter() - begun)
                print(f"built {scope} in {self._notes[f'built {scope}']:.0f} s", file=sys.stderr, flush=True)
            seconds += self._notes[f"built {scope}"]
        return seconds, sum(len(_text(item)) for texts in items.values() for item in texts)

    def baselines(self, name: str, asked: Sequence[Asked]) -> list[dict[str, list[str]]]:
        """Return the rankings of the baselines for each question, from the notes if they are there."""
        if f"baselines {name}" not in self._notes:
            self._keep(f"baselines {name}", [{by: self._baseline(one, by) for by in BASELINES} for one in asked])
        return self._notes[f"baselines {name}"]

    def _baseline(self, one: Asked, by: Baseline) -> list[str]:
        scopes = [Scope.from_text(scope) for scope in one.scopes]
        ids = self._engine.search.baseline(scopes, one.question, by, DEPTH)
        found = self._engine.backend.get_episodes(scopes, ids)
        return [_key(found[i]) for i in ids]

    def search(self, one: Asked, *, graph: bool) -> list[str]:
        """Return what `search` finds."""
        off = ExpansionConfig(enabled=graph)
        return [
            _key(found.episode) for found in self.memory.search(one.question, k=DEPTH, expansion=off, scopes=one.scopes)
        ]

    def _read(self) -> dict[str, Any]:
        return json.loads(self._file.read_text("utf-8")) if self._file.exists() else {}

    def _keep(self, key: str, value: Any) -> None:
        self._notes = {**self._read(), key: value}  # another run may have added to them
        self._file.write_text(json.dumps(self._notes), "utf-8")


def _text(item: Any) -> str:
    return _field(item, "text")


def _field(item: Any, name: str) -> str:
    return getattr(item, name) if hasattr(item, name) else item[name]


def _key(episode: Episode) -> str:
    return f"{episode.scope}#{episode.external_id}"


def measure(built: Built, name: str, asked: Sequence[Asked]) -> tuple[dict[str, Floats], float]:
    """Return the measures of each method, a row for each question, and the median milliseconds of a search."""
    rows: dict[str, list[list[float]]] = {method: [] for method in METHODS}
    took: list[float] = []
    warm: set[tuple[str, ...]] = set()
    for one, others in zip(asked, built.baselines(name, asked), strict=True):
        if one.scopes not in warm:
            built.search(one, graph=False)  # reads the index
            warm.add(one.scopes)
        begun = time.perf_counter()
        full = built.search(one, graph=True)
        took.append((time.perf_counter() - begun) * 1000)
        answers = {f"{one.scopes[0]}#{answer}" for answer in one.answers}
        for method, ranking in {"full": full, "no graph": built.search(one, graph=False), **others}.items():
            rows[method].append(_measures(ranking, answers))
    return {method: np.array(values) for method, values in rows.items()}, float(np.median(took))


def _measures(ranking: Sequence[str], answers: Set[str]) -> list[float]:
    at = {k: recall_at(ranking, answers, k) for k in (5, 10, 25)}
    return [*at.values(), float(at[10] == 1), float(at[10] > 0), reciprocal_rank(ranking, answers)]


def in_context(built: Built, asked: Sequence[Asked], items: Items) -> str:
    """Return, for each budget, the share of questions with a gold passage in the context.

    The passage of a turn is its sentence that shares most words with the question.
    """
    texts = {f"{scope}#{_field(item, 'external_id')}": _text(item) for scope, of in items.items() for item in of}
    shares: list[str] = []
    for budget in BUDGETS:
        inside = 0
        for one in asked:
            block = _plain(built.memory.context(one.question, budget_tokens=budget, scopes=one.scopes))
            wanted = set(terms(one.question))
            gold = (SENTENCE.findall(texts[f"{one.scopes[0]}#{answer}"]) for answer in one.answers)
            passages = (max(found, key=lambda text: len(wanted & set(terms(text)))) for found in gold if found)
            inside += any(_plain(passage)[:200] in block for passage in passages)
        shares.append(f"{budget:,} {inside / len(asked):.3f}")
    return f"  gold passage in the context of n tokens: {', '.join(shares)}"


def _plain(text: str) -> str:
    return " ".join(text.translate({ord("<"): None, ord(">"): None}).split())


def table(name: str, figures: Mapping[str, Floats], categories: Sequence[str], about: str) -> Iterator[str]:
    """Yield the lines of a set: its methods with the gain of search over each, and its abilities."""
    full = figures["full"]
    yield f"{name}: {len(full)} questions; {about}"
    yield f"  {'':26}" + "".join(f"{measure:>8}" for measure in MEASURES) + "   search − it @10 [95 %]"
    for method, values in figures.items():
        gain = "" if method == "full" else "   " + _gain(full - values)
        yield f"  {method:26}" + "".join(f"{value:8.3f}" for value in values.mean(0)) + gain
    of = np.array(categories)
    for category in sorted(set(categories)):
        inside = of == category
        means = {method: values[inside].mean(0)[AT_10] for method, values in figures.items()}
        best = max(BASELINES, key=lambda by: means[by])
        rest = " ".join(f"{method} {mean:.3f}" for method, mean in means.items() if method != "full")
        yield (
            f"    {category:18} {inside.sum():5}"
            + "".join(f"{x:8.3f}" for x in full[inside].mean(0))
            + f"   @10: {rest}"
        )
        yield f"    {'':24}" + f"search − {best}: {_gain((full - figures[best])[inside])}"


def _gain(differences: Floats, column: int = AT_10) -> str:
    low, high = interval(differences)
    return f"{differences.mean(0)[column]:+.3f} [{low[column]:+.3f}, {high[column]:+.3f}]"


def compare(name: str, figures: Mapping[str, Floats], earlier: Scores) -> Iterator[str]:
    """Yield the change of each measure since an earlier run, paired by question."""
    for method in ("full", "no graph"):
        if name in earlier:
            change = figures[method] - np.array(earlier[name][method])
            yield f"  since, {method}: " + "  ".join(f"{m} {_gain(change, i)}" for i, m in enumerate(MEASURES))


def main() -> None:
    """Build, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS), help="comma-separated")
    parser.add_argument("--extractor", default="auto", help="as the setting of that name; auto is the default of users")
    parser.add_argument("--embeddings", default="auto", help="as the setting of that name")
    parser.add_argument("--save", metavar="FILE", type=Path, help="write the scores of each question")
    parser.add_argument("--context", action="store_true", help="also measure what the context has, of each set")
    parser.add_argument("--against", metavar="FILE", type=Path, help="compare with an earlier --save")
    given = parser.parse_args()
    wanted: list[str] = given.sets.split(",")
    loaded = [*KINDS, *wanted] if "mixed" in wanted else wanted
    sets = {name: load(name) for name in loaded if name != "mixed"}
    earlier: Scores = json.loads(given.against.read_text("utf-8")) if given.against else {}
    built, blocks, scores = Built(given.extractor, given.embeddings), list[tuple[float, str]](), Scores()
    with built.memory:
        costs = {name: built.build(data.items) for name, data in sets.items()}
        for name in wanted:
            asked = mixed(sets) if name == "mixed" else sets[name].asked
            figures, milliseconds = measure(built, name, asked)
            about = f"query {milliseconds:.1f} ms"
            if name in costs:
                seconds, characters = costs[name]
                about += f", ingest {1000 * seconds / characters:.3f} s per 1,000 characters"
            block = [*table(name, figures, [one.category for one in asked], about), *compare(name, figures, earlier)]
            if given.context and name in costs:
                block.append(in_context(built, asked, sets[name].items))
            blocks.append((float(figures["full"].mean(0)[AT_10]), "\n".join(block)))
            scores[name] = {method: values.tolist() for method, values in figures.items()}
    print("\n\n".join(block for _, block in sorted(blocks)))
    if given.save:
        given.save.write_text(json.dumps(scores), "utf-8")


if __name__ == "__main__":
    main()
