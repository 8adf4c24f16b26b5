"""Times of LangGraph stores: `GraphMemoryStore` on a store of graphmem, and LangGraph's own.

    python tests/bench/langgraph_stores.py 1000 10000

Prints the median of put, get, search and list in milliseconds, with items of 100 users. All stores use vectors of 384
dimensions from the same hash of words, so that no embedding model is timed.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore, PutOp
from langgraph.store.memory import InMemoryStore

from graphmem import GraphMemory
from graphmem.adapters.langgraph import GraphMemoryStore

USERS, DIMENSIONS = 100, 384
WORDS = "tea dog train garden lamp river paper violin apple stone winter bread glass moon cloud".split()


class Hashed(Embeddings):
    """Sums of random vectors of the words in a text."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        total = np.zeros(DIMENSIONS)
        for word in text.lower().split():
            seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
            total += np.random.default_rng(seed).standard_normal(DIMENSIONS)
        return (total / (np.linalg.norm(total) + 1e-9)).tolist()


def value(number: int) -> dict[str, Any]:
    words = (WORDS[(number * step) % len(WORDS)] for step in (1, 3, 7, 11))
    return {"text": f"note {number} about {' '.join(words)}", "number": number, "kind": WORDS[number % 7]}


def path(number: int) -> tuple[tuple[str, ...], str]:
    return ("users", f"user-{number % USERS}", "notes"), f"note-{number}"


def timed(rounds: int, call: Callable[[int], object]) -> float:
    """Return the median of some calls in milliseconds."""
    times: list[float] = []
    for number in range(rounds):
        begun = time.perf_counter()
        call(number)
        times.append(time.perf_counter() - begun)
    return median(times) * 1000


def measured(store: BaseStore, items: int, rounds: int) -> dict[str, float]:
    for start in range(0, items, 100):
        store.batch([PutOp(*path(number), value(number)) for number in range(start, min(items, start + 100))])
    store.search(("users",), query="warm up")
    store.search(("users",))
    user = ("users", "user-7", "notes")
    return {
        "put new": timed(rounds, lambda n: store.put(*path(items + n), value(n))),
        "put over": timed(rounds, lambda n: store.put(*path(n), value(n + 1))),
        "get": timed(rounds, lambda n: store.get(*path(n))),
        "search of a user": timed(rounds, lambda n: store.search(user, query=f"violin {WORDS[n % len(WORDS)]}")),
        "search of all": timed(rounds, lambda n: store.search(("users",), query=f"violin {WORDS[n % len(WORDS)]}")),
        "filter of a user": timed(rounds, lambda _: store.search(user, filter={"kind": "dog"})),
        "filter of all": timed(rounds, lambda _: store.search(("users",), filter={"kind": "dog"})),
        "list of a user": timed(rounds, lambda _: store.search(user)),
        "namespaces": timed(rounds, lambda _: store.list_namespaces(prefix=("users",))),
    }


def stores(opened: ExitStack, folder: Path) -> dict[str, BaseStore]:
    index: Any = {"dims": DIMENSIONS, "embed": Hashed(), "fields": ["text"]}
    found: dict[str, BaseStore] = {"InMemoryStore": InMemoryStore(index=index)}
    try:
        module: Any = import_module("langgraph.store.sqlite")
    except ImportError:
        print("SqliteStore: pip install langgraph-checkpoint-sqlite")
    else:
        # without an index, whose extension of SQLite not every Python can load: it searches nothing by a query
        sqlite: Any = opened.enter_context(module.SqliteStore.from_conn_string(f"{folder}/langgraph.db"))
        sqlite.setup()
        found["SqliteStore"] = sqlite
    for name, url in (("graphmem memory", "memory://"), ("graphmem SQLite", f"sqlite:///{folder}/graphmem.db")):
        memory = opened.enter_context(
            GraphMemory.open(url, scope="bench", extractor="none", embeddings=Hashed(), background=False)
        )
        found[name] = GraphMemoryStore(memory, index={"fields": ["text"]})
    return found


def main(sizes: Sequence[int]) -> None:
    for items in sizes:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
            rows = {name: measured(store, items, 50) for name, store in stores(opened, Path(folder)).items()}
        print(f"\n{items:,} items, median in ms")
        for what in next(iter(rows.values())):
            print(f"{what:18}", *(f"{name} {row[what]:9.3f}" for name, row in rows.items()), sep="  ")


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [1000])
