"""LangGraph stores with one bug each, to try the parity kit on. All are LangGraph's store in memory, spoilt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from langgraph.store.base import GetOp, Item, ListNamespacesOp, Op, PutOp, SearchItem, SearchOp

from graphmem.testing.langgraph import Reference


def words_of(texts: Sequence[str]) -> list[list[float]]:
    """Return vectors of the words in texts."""
    vectors: list[list[float]] = []
    for text in texts:
        vector = [0.0] * 64
        for word in "".join(c if c.isalnum() else " " for c in text.lower()).split():
            vector[sum(map(ord, word)) % 64] += 1.0
        vectors.append(vector)
    return vectors


class Sound(Reference):
    """No bug: what the others inherit.

    With an index, it fails where a batch has the same text twice (langgraph-checkpoint 4.3.2).
    """

    def __init__(self, *, indexed: bool = False) -> None:
        super().__init__(index={"dims": 64, "embed": words_of} if indexed else None)


class Timed(Sound):
    """A store with TTLs and no bug."""

    supports_ttl = True

    def __init__(self, clock: Callable[[], datetime]) -> None:
        super().__init__()
        self.clock = clock
        self.ends: dict[tuple[tuple[str, ...], str], tuple[datetime, timedelta]] = {}

    def refresh(self, item: Item, op: GetOp | SearchOp) -> None:
        path = item.namespace, item.key
        if op.refresh_ttl and path in self.ends:
            ttl = self.ends[path][1]
            self.ends[path] = self.clock() + ttl, ttl

    def sweep_ttl(self) -> int:
        gone = [path for path, (end, _) in self.ends.items() if end <= self.clock()]
        for namespace, key in gone:
            self._data[namespace].pop(key, None)
            self._vectors[namespace].pop(key, None)
            del self.ends[namespace, key]
        return len(gone)

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        ops = list(ops)
        hidden = {path: self._data[path[0]].pop(path[1]) for path in self.expired() if path[1] in self._data[path[0]]}
        for path in {(op.namespace, op.key) for op in ops if isinstance(op, PutOp)} & set(hidden):
            del hidden[path]
        results = super().batch(ops)
        for op in ops:
            if isinstance(op, PutOp):
                self.ends.pop((op.namespace, op.key), None)
                if op.ttl is not None and op.value is not None:
                    ttl = timedelta(minutes=op.ttl)
                    self.ends[op.namespace, op.key] = self.clock() + ttl, ttl
        for op, result in zip(ops, results, strict=True):
            if isinstance(op, (GetOp, SearchOp)):
                for item in result if isinstance(op, SearchOp) else [result] if result else []:
                    self.refresh(item, op)
        for (namespace, key), item in hidden.items():
            self._data[namespace][key] = item
        return results

    def expired(self) -> list[tuple[tuple[str, ...], str]]:
        return [path for path, (end, _) in self.ends.items() if end <= self.clock()]


class ComparesPrefixesAsText(Sound):
    """Finds ("ab",) under ("a",)."""

    def _filter_items(self, op: SearchOp) -> Any:
        prefix = "/".join(op.namespace_prefix)
        wider = [ns for ns in self._data if "/".join(ns).startswith(prefix)]
        find = super()._filter_items
        return [pair for ns in wider for pair in find(op._replace(namespace_prefix=ns)) if pair[0].namespace == ns]


class IgnoresOffsets(Sound):
    """Returns the first page each time."""

    def _batch_search(self, ops: Any, queryinmem_store: Any, results: Any) -> None:
        first = {i: (op._replace(offset=0), found) for i, (op, found) in ops.items()}
        super()._batch_search(first, queryinmem_store, results)


class WritesBeforeItReads(Sound):
    """Applies the puts of a batch first."""

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        ops = list(ops)
        super().batch([op for op in ops if isinstance(op, PutOp)])
        rest = iter(super().batch([op for op in ops if not isinstance(op, PutOp)]))
        return [None if isinstance(op, PutOp) else next(rest) for op in ops]


class KeepsTheFirstPut(Sound):
    """Lets the first of several puts in a batch win."""

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        ops, seen = list(ops), set[Any]()
        for place, op in enumerate(ops):
            if isinstance(op, PutOp):
                path = op.namespace, op.key
                if path in seen:
                    ops[place] = GetOp(("nowhere",), "nothing")
                seen.add(path)
        return super().batch(ops)


class FiltersByTheFirstLevel(Sound):
    """Takes a nested filter for a value."""

    def _filter_items(self, op: SearchOp) -> Any:
        def flat(value: Any) -> Any:
            return value if "$" in str(value) else {"$eq": value}

        return super()._filter_items(op._replace(filter={k: flat(v) for k, v in (op.filter or {}).items()}))


class MovesUpdatedItemsToTheEnd(Sound):
    """Lists the items by the time of their last put."""

    def _apply_put_ops(self, put_ops: Any) -> None:
        for namespace, key in put_ops:
            if namespace in self._data:
                self._data[namespace].pop(key, None)
        super()._apply_put_ops(put_ops)


class TakesStarsForLabels(Sound):
    """Knows no wildcards in paths of namespaces."""

    def _handle_list_namespaces(self, op: ListNamespacesOp) -> Any:
        found = super()._handle_list_namespaces(op._replace(limit=10_000, offset=0))
        if any("*" in each.path for each in op.match_conditions or ()):
            return []
        return found[op.offset : op.offset + op.limit]


class CutsNamespacesAfterThePage(Sound):
    """Cuts namespaces to `max_depth` after the page is taken, so that pages repeat."""

    def _handle_list_namespaces(self, op: ListNamespacesOp) -> Any:
        found = super()._handle_list_namespaces(op._replace(max_depth=None))
        return sorted({each[: op.max_depth] for each in found})


class RoundsNumbers(Sound):
    """Stores numbers as integers."""

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        def rounded(op: Op) -> Op:
            if not isinstance(op, PutOp) or op.value is None:
                return op
            return op._replace(value={k: int(v) if isinstance(v, float) else v for k, v in op.value.items()})

        return super().batch([rounded(op) for op in ops])


class ForgetsAsyncWrites(Sound):
    """Acknowledges async puts of more than one item, and stores the first."""

    async def abatch(self, ops: Iterable[Op]) -> list[Any]:
        ops = list(ops)
        puts = [op for op in ops if isinstance(op, PutOp)]
        results = self.batch([op for op in ops if op not in puts[1:]])
        for place, op in enumerate(ops):
            if op in puts[1:]:
                results.insert(place, None)
        return results


class IndexesEverything(Sound):
    """Ignores ``index=False``."""

    def _extract_texts(self, put_ops: Any) -> Any:
        return super()._extract_texts({path: op._replace(index=None) for path, op in put_ops.items()})


class SearchesTheOldText(Sound):
    """Doesn't index a key again."""

    def _extract_texts(self, put_ops: Any) -> Any:
        return super()._extract_texts({(ns, key): op for (ns, key), op in put_ops.items() if key not in self._data[ns]})


class NeverRefreshes(Timed):
    """Counts a TTL from the put alone."""

    def refresh(self, item: Item, op: GetOp | SearchOp) -> None:
        pass


class AlwaysRefreshes(Timed):
    """Ignores ``refresh_ttl=False``."""

    def refresh(self, item: Item, op: GetOp | SearchOp) -> None:
        super().refresh(item, op._replace(refresh_ttl=True))


class ReturnsExpiredItems(Timed):
    """Hides expired items only once they are swept."""

    def expired(self) -> list[tuple[tuple[str, ...], str]]:
        return []


class ReturnsExpiredItemsToQueries(Timed):
    """Hides expired items from everything but searches by a query."""

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        ops = list(ops)
        asks = any(isinstance(op, SearchOp) and op.query for op in ops)
        return Sound.batch(self, ops) if asks else super().batch(ops)


class RefreshesOnGetAlone(Timed):
    """Forgets to refresh what a search returns."""

    def refresh(self, item: Item, op: GetOp | SearchOp) -> None:
        if not isinstance(item, SearchItem):
            super().refresh(item, op)


class KeepsExpiredValuesBelowNewOnes(Timed):
    """Replaces an expired value without removing it: a delete of the new one uncovers it once the clock goes back."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        super().__init__(clock)
        self.below: dict[tuple[tuple[str, ...], str], tuple[Item, tuple[datetime, timedelta]]] = {}

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        ops = list(ops)
        for path in self.expired():
            self.below[path] = self._data[path[0]][path[1]], self.ends[path]
        results = super().batch(ops)
        for op in ops:
            if isinstance(op, PutOp) and op.value is None and (path := (op.namespace, op.key)) in self.below:
                self._data[op.namespace][op.key], self.ends[path] = self.below.pop(path)
        return results
