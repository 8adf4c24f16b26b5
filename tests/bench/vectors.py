"""What vector indexes take: `python -m tests.bench.vectors --index exact --index qdrant-edge --index bolt://…`.

One scope with `--vectors` vectors of 384 numbers, two for each key, around 500 centres, with 100 others beside it that
hold a fifth as many together. A Neo4j server that is named is emptied. The last line is a JSON object: for each index
vectors written a second, and for 10 and for 1,000 keys milliseconds of a question (median), times numpy's own product
and partition of the same matrix, and recall.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphmem.models import Scope
from graphmem.protocols import VectorIndex
from graphmem.vectors import ExactVectorIndex

HOME = Scope("home")
DIMENSION, OTHERS, EACH = 384, 100, 2
LIMITS = (10, 1000)

Vectors = NDArray[np.float32]


def made(count: int, seed: int) -> Vectors:
    """Return vectors around centres that are the same for every seed."""
    centres = np.random.default_rng(0).standard_normal((500, DIMENSION))
    chance = np.random.default_rng(seed)
    rows = centres[chance.integers(0, len(centres), count)] + 0.8 * chance.standard_normal((count, DIMENSION))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def items(rows: Vectors, prefix: str) -> list[tuple[str, Vectors]]:
    """Return keys with `EACH` vectors."""
    return [(f"{prefix}{i}", rows[i : i + EACH]) for i in range(0, len(rows), EACH)]


def opened(choice: str, folder: Path, exact_below: int | None) -> VectorIndex:
    """Return an empty index of a kind."""
    options: dict[str, Any] = {} if exact_below is None else {"exact_below": exact_below}
    if choice == "exact":
        return ExactVectorIndex()
    if choice == "qdrant-edge":
        from graphmem.vectors.edge import QdrantEdgeVectorIndex

        return QdrantEdgeVectorIndex(folder, **options)
    if choice == "qdrant-local":
        from qdrant_client import QdrantClient

        from graphmem.vectors.qdrant import QdrantVectorIndex

        return QdrantVectorIndex(QdrantClient(":memory:"), **options)
    if choice.startswith("http"):
        from graphmem.vectors.qdrant import QdrantVectorIndex, connect

        index: VectorIndex = QdrantVectorIndex(connect(choice), "graphmem_bench", **options)
    else:
        from graphmem_neo4j import open_backend
        from graphmem_neo4j.vectors import Neo4jVectorIndex
        from tests.shared_servers import empty

        empty(choice)
        index = Neo4jVectorIndex(open_backend(choice).database, **options)
    index.reset()
    return index


def measured(index: VectorIndex, count: int, questions: int) -> dict[str, Any]:
    """Fill an index and ask it."""
    rows = made(count, 1)
    begun = time.perf_counter()
    keyed = items(rows, "k")
    for start in range(0, len(keyed), 1000):
        index.upsert(HOME, "episode", keyed[start : start + 1000])
    written = count / (time.perf_counter() - begun)
    others = made(count // 5, 2)
    share = max(EACH, len(others) // OTHERS)
    for number in range(OTHERS):
        index.upsert(Scope(f"other{number}"), "episode", items(others[number * share :][:share], f"o{number}-"))
    result: dict[str, Any] = {"upserts_s": round(written)}
    asked = made(questions, 3)
    for limit in LIMITS:
        result[f"ms_{limit}"] = round(1000 * median_time(lambda q, k=limit: search(index, q, k), asked), 1)
        plain = median_time(lambda q, k=limit: np.argpartition(-(rows @ q), EACH * k)[: EACH * k], asked)
        result[f"times_numpy_{limit}"] = round(result[f"ms_{limit}"] / (1000 * plain), 2)
        result[f"recall_{limit}"] = round(float(np.mean([recall(index, rows, q, limit) for q in asked])), 4)
    return result


def median_time(work: Callable[[Vectors], object], asked: Vectors) -> float:
    """Return the median seconds of a piece of work, the first left out."""
    taken: list[float] = []
    for question in asked:
        begun = time.perf_counter()
        work(question)
        taken.append(time.perf_counter() - begun)
    return float(np.median(taken[1:]))


def search(index: VectorIndex, question: Vectors, limit: int) -> list[str]:
    """Return the keys that are found."""
    return [hit.key for hit in index.search([HOME], "episode", question, limit=limit)]


def recall(index: VectorIndex, rows: Vectors, question: Vectors, limit: int) -> float:
    """Return the share of the nearest keys that is found."""
    best = (rows @ question).reshape(-1, EACH).max(axis=1)
    limit = min(limit, len(best))
    wanted = {f"k{i * EACH}" for i in np.argpartition(-best, limit - 1)[:limit].tolist()}
    return len(wanted & set(search(index, question, limit))) / limit


def main() -> None:
    """Measure the indexes that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", action="append", required=True, metavar="exact|qdrant-edge|qdrant-local|URL")
    parser.add_argument("--vectors", type=int, default=50_000)
    parser.add_argument("--questions", type=int, default=15)
    parser.add_argument("--exact-below", type=int)
    arguments = parser.parse_args()
    results: dict[str, Any] = {"vectors": arguments.vectors, "load": round(os.getloadavg()[0], 1)}
    for choice in arguments.index:
        with tempfile.TemporaryDirectory() as folder:
            index = opened(choice, Path(folder), arguments.exact_below)
            results[choice.partition(":")[0]] = measured(index, arguments.vectors, arguments.questions)
            index.close()
    print(json.dumps(results))


if __name__ == "__main__":
    main()
