"""What the benchmarks of recall quality share: their options, the store, and the object that they print."""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graphmem import Evaluation, GraphMemory


def options(about: str) -> argparse.ArgumentParser:
    """Return a parser with the options of both."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", metavar="URL", help="an empty store; by default a temporary SQLite file")
    parser.add_argument("--extractor", default="auto", help="as the setting of that name; auto is the default of users")
    parser.add_argument("--no-model", action="store_true", help="without an embedding model")
    parser.add_argument("--json", action="store_true", help="print nothing but one JSON object")
    return parser


@contextmanager
def opened(given: argparse.Namespace) -> Generator[GraphMemory]:
    """Open the memory that is measured."""
    with tempfile.TemporaryDirectory() as folder:
        url = given.store or f"sqlite:///{Path(folder).as_posix()}/memory.db"
        model = "none" if given.no_model else None
        with GraphMemory.open(
            url,
            extractor=given.extractor,
            embeddings=model,
            background=False,
            embedding_timeout=300.0,  # a busy machine must not change the figures
        ) as memory:
            yield memory


class Stopwatch:
    """Adds up how long calls take."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, work: Callable[[], object]) -> None:
        begun = time.perf_counter()
        work()
        self.seconds += time.perf_counter() - begun


def report(name: str, evaluation: Evaluation, facts: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the figures: a table unless JSON is wanted, and one JSON object on the last line."""
    full, graph = evaluation.methods["full"], evaluation.gains["no_graph"]
    found = {
        "benchmark": name,
        **facts,
        "questions": full.questions,
        "recall": {str(k): round(at.mean, 4) for k, at in full.recall.items()},
        "interval": {str(k): [round(at.low, 4), round(at.high, 4)] for k, at in full.recall.items()},
        "mrr": round(full.mrr.mean, 4),
        "by_category": {
            category: {
                "questions": scores.questions,
                **{str(k): round(at.mean, 4) for k, at in scores.recall.items()},
            }
            for category, scores in full.by_category.items()
        },
        "baselines": {
            method: {str(k): round(at.mean, 4) for k, at in scored.recall.items()}
            for method, scored in evaluation.methods.items()
            if method != "full"
        },
        "gain_of_graph": {
            category: {str(k): [round(x, 4) for x in (at.mean, at.low, at.high)] for k, at in scores.recall.items()}
            for category, scores in {"all": graph, **graph.by_category}.items()
        },
        "query_ms": evaluation.query_ms,
        "degraded": list(evaluation.degraded),
        "python": platform.python_version(),
    }
    if not as_json:
        table(evaluation)
    print(json.dumps(found, ensure_ascii=False))


def table(evaluation: Evaluation) -> None:
    """Print recall@k of each method, and of the whole pipeline by category."""
    full = evaluation.methods["full"]
    print(f"{'':12} {'n':>5}  " + "  ".join(f"@{k:<4}" for k in full.recall) + "  MRR")
    rows = [*evaluation.methods.items(), *((f"category {name}", s) for name, s in full.by_category.items())]
    for name, scores in rows:
        figures = "  ".join(f"{at.mean:.3f}" for at in scores.recall.values())
        print(f"{name:12} {scores.questions:5}  {figures}  {scores.mrr.mean:.3f}")
