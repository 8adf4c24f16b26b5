"""Parity kit for LangGraph stores: the same operations give the same results as on LangGraph's `InMemoryStore`.

    class TestMyStore(LangGraphStoreTests):
        def make_store(self, tmp_path, clock):
            return MyStore(tmp_path / "items.db")

Each test works under a root label of its own, so that all may use one database.
"""

# ruff: noqa: D102  the names of the tests describe them

from __future__ import annotations

import asyncio
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, cast

from graphmem.errors import MissingExtra

try:
    import pytest
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import strategies as st
except ImportError as error:
    raise MissingExtra("graphmem.testing.langgraph", "testing") from error
try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        InvalidNamespaceError,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        SearchOp,
    )
    from langgraph.store.memory import InMemoryStore
except ImportError as error:
    raise MissingExtra("graphmem.testing.langgraph", "langgraph") from error

Namespace = tuple[str, ...]

ODD = ("/", "%2F", "a/b", "a%2Fb", "*x", "حساب", "用户", " ", "A", "a", "ab", "'\"\\", "\u0301", "🦊", "n" * 300)
"""Labels of namespaces and keys that an encoding may confuse."""

VALUES: tuple[dict[str, Any], ...] = (
    {"n": 1, "text": "green tea"},
    {"n": 2, "text": "black tea", "tags": ["hot", "cold"]},
    {"n": 2.5, "text": "1"},
    {"n": -3, "text": 1, "on": True},
    {"n": 0, "text": None, "on": False},
    {"n": "4", "inner": {"color": "red", "size": 3}},
    {"n": 1, "inner": {"color": "blue", "size": 1, "deep": {"x": [1, {"y": None}]}}},
    {"n": 10, "on": 1, "inner": "red"},
    {"n": 7, "tags": [], "$": "dollar", "a.b": "dotted", "": "empty"},
)
"""Values that are stored; each has a field `n` that `$gt` and its kind compare."""

FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"n": 1},
    {"n": 2.0},
    {"n": "4"},
    {"text": "green tea"},
    {"text": None},
    {"text": "1"},
    {"missing": None},
    {"on": True},
    {"on": 1},
    {"on": 0},
    {"tags": ["hot", "cold"]},
    {"tags": ["hot"]},
    {"tags": []},
    {"inner": "red"},
    {"inner": {"color": "red"}},
    {"inner": {"size": {"$gt": 2}, "color": {"$ne": "x"}}},
    {"inner": {"deep": {"x": [1, {"y": None}]}}},
    {"a.b": "dotted"},
    {"": "empty"},
    {"n": {"$eq": 2}},
    {"n": {"$ne": 2}},
    {"n": {"$gt": 2}},
    {"n": {"$gte": 2}},
    {"n": {"$lt": 2.5}},
    {"n": {"$lte": "2.5"}},
    {"n": {"$gt": 0, "$lt": 5}, "text": {"$ne": "green tea"}},
    {"text": {"$eq": None}},
    {"text": {"$ne": None}},
    {"inner": {"$eq": {"color": "red", "size": 3}}},
)


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the time."""
        return self.now

    def move(self, minutes: float) -> None:
        """Move the clock, back for a negative number."""
        self.now += timedelta(minutes=minutes)


class Reference(InMemoryStore):
    """LangGraph's store, without the empty namespaces that reads and deletes create in it."""

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        """Run operations."""
        ops = list(ops)
        absent = [isinstance(op, GetOp) and op.namespace not in self._data for op in ops]
        found = iter(super().batch([op for op, is_absent in zip(ops, absent, strict=True) if not is_absent]))
        return [None if is_absent else next(found) for is_absent in absent]

    async def abatch(self, ops: Iterable[Op]) -> list[Any]:
        """`batch` for async code."""
        return self.batch(ops)

    def _apply_put_ops(self, put_ops: dict[tuple[Namespace, str], PutOp]) -> None:
        kept = {path: op for path, op in put_ops.items() if op.value is not None or path[0] in self._data}
        super()._apply_put_ops(kept)

    def _handle_list_namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        everything, self._data = self._data, {each: items for each, items in self._data.items() if items}  # type: ignore[assignment]
        try:
            return super()._handle_list_namespaces(op)
        finally:
            self._data = everything


def plain(result: Any) -> Any:
    """Return the result of an operation without times and scores, for comparison."""
    if isinstance(result, Item):
        return result.namespace, result.key, result.value
    return [plain(each) for each in cast("list[Any]", result)] if isinstance(result, list) else result


def keys(items: Sequence[Item]) -> list[str]:
    """Return the keys of items in their order."""
    return [item.key for item in items]


class _Case(ABC):
    """Hooks and fixtures of the classes of tests."""

    @abstractmethod
    def make_store(self, tmp_path: Path, clock: Clock) -> BaseStore:
        """Return a store.

        Parameters
        ----------
        tmp_path
            An empty directory for its files.
        clock
            The clock of the test. Only `LangGraphTTLTests` require that the store uses it.
        """

    @pytest.fixture
    def clock(self) -> Clock:
        """Return the clock of the test."""
        return Clock()

    @pytest.fixture
    def store(self, tmp_path: Path, clock: Clock) -> Iterator[BaseStore]:
        """Return the store under test, and close it after the test if it can be closed."""
        store = self.make_store(tmp_path, clock)
        yield store
        close: Callable[[], object] | None = getattr(store, "close", None)
        if close is not None:
            close()

    @pytest.fixture
    def root(self) -> str:
        """Return the first label of all namespaces of the test."""
        return secrets.token_hex(8)


# few, so that operations meet
_LABELS = st.sampled_from(("a", "b", "ab"))
_KEYS = st.sampled_from(("k", "K", "1"))


# by functions, as `builds` would draw the optional arguments, too


def _put(namespace: Namespace, key: str, value: dict[str, Any] | None) -> PutOp:
    return PutOp(namespace, key, value)


def _get(namespace: Namespace, key: str) -> GetOp:
    return GetOp(namespace, key)


def _search(prefix: Namespace, wanted: dict[str, Any] | None, limit: int, offset: int) -> SearchOp:
    return SearchOp(prefix, wanted, limit, offset)


def _operations(root: str) -> st.SearchStrategy[Op]:
    namespaces = st.lists(_LABELS, max_size=2).map(lambda labels: (root, *labels))
    paths = st.lists(st.one_of(_LABELS, st.just("*")), min_size=1, max_size=2).map(tuple)
    conditions = st.one_of(
        st.builds(MatchCondition, st.just("prefix"), paths.map(lambda path: (root, *path))),
        st.builds(MatchCondition, st.just("suffix"), paths),
    )
    puts = st.builds(_put, namespaces, _KEYS, st.sampled_from(VALUES))
    pages = {"limit": st.sampled_from((0, 1, 2, 10, 100)), "offset": st.sampled_from((0, 0, 1, 3))}
    return st.one_of(
        puts,
        puts,
        st.builds(_put, namespaces, _KEYS, st.none()),
        st.builds(_get, namespaces, _KEYS),
        st.builds(_search, namespaces, st.one_of(st.none(), st.sampled_from(FILTERS)), **pages),
        st.builds(
            ListNamespacesOp,
            st.lists(conditions, max_size=2).map(lambda more: (MatchCondition("prefix", (root,)), *more)),
            st.one_of(st.none(), st.integers(1, 3)),
            **pages,
        ),
    )


_ROOT = (MatchCondition("prefix", ("root",)),)
_LAST_LOOK: list[Op] = [
    SearchOp(("root",), limit=100),
    SearchOp(("root", "a"), limit=2, offset=1),
    ListNamespacesOp(_ROOT),
    ListNamespacesOp((*_ROOT, MatchCondition("prefix", ("root", "*", "a")))),
    *(ListNamespacesOp(_ROOT, depth, limit=1, offset=n) for depth in (1, 2) for n in range(3)),
]


class LangGraphStoreTests(_Case):
    """Tests of all operations except searches by a query, and of TTLs."""

    random_settings: ClassVar[settings] = settings(
        max_examples=60,
        deadline=None,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    """How long random operations search; a subclass may set more examples."""

    def test_random_operations_have_the_results_of_langgraphs_store(self, store: BaseStore) -> None:
        self._compare(lambda batches: [store.batch(ops) for ops in batches])

    def test_random_async_operations_have_the_results_of_langgraphs_store(self, store: BaseStore) -> None:
        async def run(batches: Sequence[Sequence[Op]]) -> list[list[Any]]:
            return [await store.abatch(ops) for ops in batches]

        self._compare(lambda batches: asyncio.run(run(batches)))

    def _compare(self, run: Callable[[Sequence[Sequence[Op]]], Sequence[Sequence[Any]]]) -> None:
        @self.random_settings
        @given(st.data())
        def compare(data: st.DataObject) -> None:
            root, reference = secrets.token_hex(8), Reference()
            operations = _operations("root")
            drawn = data.draw(st.lists(st.lists(operations, min_size=2, max_size=6), min_size=2, max_size=8))
            batches = [[_under(root, op) for op in ops] for ops in [*drawn, _LAST_LOOK]]
            expected = [plain(reference.batch(ops)) for ops in batches]
            for ops, found, right in zip(batches, run(batches), expected, strict=True):
                for op, one, other in zip(ops, found, right, strict=True):
                    assert plain(one) == other, op

        compare()

    @pytest.mark.parametrize("wanted", FILTERS, ids=str)
    def test_a_filter_matches_what_it_matches_in_langgraphs_store(
        self, store: BaseStore, root: str, wanted: dict[str, Any]
    ) -> None:
        reference = Reference()
        puts = [PutOp((root,), str(number), value) for number, value in enumerate(VALUES)]
        store.batch(puts)
        reference.batch(puts)
        expected = keys(reference.search((root,), filter=wanted, limit=100))
        assert keys(store.search((root,), filter=wanted, limit=100)) == expected

    def test_an_unknown_operator_is_a_value_error(self, store: BaseStore, root: str) -> None:
        store.put((root,), "k", {"n": 1})
        with pytest.raises(ValueError, match=r"\$near"):
            store.search((root,), filter={"n": {"$near": 1}})

    def test_a_batch_reads_what_was_there_before_it(self, store: BaseStore, root: str) -> None:
        store.put((root,), "k", {"n": 1})
        ops = [PutOp((root,), "k", {"n": 2}), GetOp((root,), "k"), PutOp((root,), "k", {"n": 3}), SearchOp((root,))]
        written, read, again, listed = store.batch(ops)
        assert (written, again) == (None, None)
        assert plain(read) == ((root,), "k", {"n": 1})
        assert plain(listed) == [((root,), "k", {"n": 1})]
        assert plain(store.get((root,), "k")) == ((root,), "k", {"n": 3})

    @pytest.mark.parametrize("label", ODD, ids=ascii)
    def test_labels_and_keys_of_any_characters_are_told_apart(self, store: BaseStore, root: str, label: str) -> None:
        for number, other in enumerate(ODD):
            store.put((root, other), other, {"n": number})
        right = ((root, label), label, {"n": ODD.index(label)})
        assert plain(store.get((root, label), label)) == right
        assert plain(store.search((root, label), limit=100)) == [right]
        assert store.list_namespaces(prefix=(root, label)) == [(root, label)]
        assert len(store.list_namespaces(prefix=(root,))) == len(ODD)

    def test_a_namespace_and_a_key_are_no_other_namespace_and_key(self, store: BaseStore, root: str) -> None:
        store.put((root, "a"), "b", {"n": 1})
        store.put((root,), "a/b", {"n": 2})
        store.put((root, "a/b"), "", {"n": 3})
        assert store.get((root, "a", "b"), "") is None
        assert [plain(item)[2] for item in store.search((root,))] == [{"n": 1}, {"n": 2}, {"n": 3}]

    @pytest.mark.parametrize("namespace", [(), ("",), ("a.b",), ("a\x00",), ("langgraph", "x"), (1,)])
    def test_invalid_namespaces_are_refused(self, store: BaseStore, namespace: Any) -> None:
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "k", {"n": 1})
        with pytest.raises(InvalidNamespaceError):
            asyncio.run(store.aput(namespace, "k", {"n": 1}))

    def test_a_value_comes_back_as_it_was_stored(self, store: BaseStore, root: str) -> None:
        value: dict[str, Any] = {
            "text": 'Zoë 北京 🦊 " \\ \n',
            "numbers": [0, -1, 2**70, 0.1, 1e300],
            "nothing": None,
            "yes": True,
            "inner": {"": {"a": []}, "long": "x" * 100_000},
        }
        store.put((root,), "k", value)
        stored = store.get((root,), "k")
        assert stored is not None
        assert stored.value == value
        assert type(stored.value["yes"]) is bool
        store.put((root,), "k", {})
        assert plain(store.get((root,), "k")) == ((root,), "k", {})

    def test_times_are_those_of_the_writes(self, store: BaseStore, root: str, clock: Clock) -> None:
        store.put((root,), "k", {"n": 1})
        first = store.get((root,), "k")
        clock.move(1)
        store.put((root,), "k", {"n": 2})
        second = store.get((root,), "k")
        assert first is not None
        assert second is not None
        assert first.created_at.tzinfo is not None
        assert first.created_at <= first.updated_at < second.updated_at
        assert second.created_at <= second.updated_at

    def test_async_methods_do_what_the_others_do(self, store: BaseStore, root: str) -> None:
        async def run() -> None:
            await asyncio.gather(*(store.aput((root, "a"), str(n), {"n": n}) for n in range(20)))
            assert len(await store.asearch((root,), limit=100)) == 20
            assert plain(await store.aget((root, "a"), "7")) == ((root, "a"), "7", {"n": 7})
            await store.adelete((root, "a"), "7")
            assert await store.aget((root, "a"), "7") is None
            assert await store.alist_namespaces(prefix=(root,)) == [(root, "a")]
            found = await store.asearch((root,), filter={"n": {"$gte": 18}})
            assert sorted(keys(found)) == ["18", "19"]

        asyncio.run(run())


class LangGraphQueryTests(_Case):
    """Tests of searches by a query, for stores with an index."""

    def test_a_query_finds_what_was_just_put_by_its_words(self, store: BaseStore, root: str) -> None:
        self._fill(store, root)
        found = store.search((root,), query="apples and pears")
        assert keys(found)[0] == "fruit"
        assert all(item.score is not None for item in found)
        assert [item.score for item in found] == sorted((item.score or 0.0 for item in found), reverse=True)

    def test_a_query_stays_under_its_prefix_and_within_its_filter(self, store: BaseStore, root: str) -> None:
        self._fill(store, root)
        store.put((root, "other"), "more", {"text": "apples and pears", "n": 9})
        assert keys(store.search((root, "other"), query="apples and pears")) == ["more"]
        found = store.search((root,), query="apples and pears", filter={"n": {"$lt": 5}})
        assert keys(found)[0] == "fruit"
        assert "more" not in keys(found)

    def test_pages_of_a_query_make_up_the_whole(self, store: BaseStore, root: str) -> None:
        self._fill(store, root)
        whole = keys(store.search((root,), query="apples", limit=10))
        pages = [key for n in range(4) for key in keys(store.search((root,), query="apples", limit=1, offset=n))]
        assert pages == whole

    def test_an_item_that_is_not_indexed_is_listed_but_not_found(self, store: BaseStore, root: str) -> None:
        self._fill(store, root)
        store.put((root,), "hidden", {"text": "apples and pears"}, index=False)
        found = store.search((root,), query="apples and pears")
        assert "hidden" not in [item.key for item in found if item.score is not None]
        assert "hidden" in keys(store.search((root,)))
        assert store.get((root,), "hidden") is not None

    def test_only_the_named_fields_are_searched(self, store: BaseStore, root: str) -> None:
        store.put((root,), "one", {"a": "apples", "b": "plums plums plums"}, index=["a"])
        store.put((root,), "two", {"a": "plums", "b": "apples apples apples"}, index=["a"])
        assert keys(store.search((root,), query="plums"))[0] == "two"
        assert keys(store.search((root,), query="apples"))[0] == "one"

    def test_paths_lead_to_each_part_of_a_list(self, store: BaseStore, root: str) -> None:
        store.put((root,), "one", {"parts": [{"t": "apples"}, {"t": "plums"}], "rest": "corn"}, index=["parts[*].t"])
        store.put((root,), "two", {"parts": [{"t": "corn"}], "rest": "plums"}, index=["parts[*].t"])
        assert [keys(store.search((root,), query=q))[0] for q in ("apples", "plums", "corn")] == ["one", "one", "two"]

    def test_a_query_finds_the_new_value_of_a_key_and_no_deleted_one(self, store: BaseStore, root: str) -> None:
        self._fill(store, root)
        store.put((root,), "trip", {"text": "corn and wheat", "n": 2})
        right = ((root,), "trip", {"text": "corn and wheat", "n": 2})
        assert plain(store.search((root,), query="corn and wheat")[0]) == right
        store.delete((root,), "trip")
        assert "trip" not in keys(store.search((root,), query="corn and wheat"))

    def _fill(self, store: BaseStore, root: str) -> None:
        texts = {"fruit": "apples and pears", "money": "revenue rose in spring", "trip": "a train across mountains"}
        store.batch([PutOp((root,), key, {"text": text, "n": 1}) for key, text in texts.items()])


class LangGraphTTLTests(_Case):
    """Tests of TTLs, for stores that support them, use the clock of the test, and never return what has expired."""

    def test_an_item_expires_and_is_gone_from_every_read(self, store: BaseStore, root: str, clock: Clock) -> None:
        store.put((root, "a"), "short", {"n": 1, "text": "apples"}, ttl=10)
        store.put((root, "b"), "long", {"n": 2, "text": "apples"})
        clock.move(9.9)
        assert keys(store.search((root,), refresh_ttl=False)) == ["short", "long"]
        clock.move(0.2)
        assert store.get((root, "a"), "short") is None
        assert keys(store.search((root,))) == ["long"]
        assert keys(store.search((root,), filter={"n": {"$gt": 0}})) == ["long"]
        assert keys(store.search((root,), query="apples")) == ["long"]
        assert store.list_namespaces(prefix=(root,)) == [(root, "b")]

    @pytest.mark.parametrize("read", ["get", "search", "filter"])
    def test_a_read_begins_the_ttl_again(self, store: BaseStore, root: str, clock: Clock, read: str) -> None:
        def item(*, refresh: bool) -> bool:
            if read == "get":
                return store.get((root,), "k", refresh_ttl=refresh) is not None
            wanted = {"n": 1} if read == "filter" else None
            return bool(store.search((root,), filter=wanted, refresh_ttl=refresh))

        store.put((root,), "k", {"n": 1}, ttl=10)
        for _ in range(3):
            clock.move(8)
            assert item(refresh=True)
        clock.move(8)
        assert item(refresh=False)
        clock.move(8)
        assert not item(refresh=True)

    def test_a_put_begins_its_own_ttl(self, store: BaseStore, root: str, clock: Clock) -> None:
        store.put((root,), "k", {"n": 1}, ttl=10)
        clock.move(5)
        store.put((root,), "k", {"n": 2}, ttl=10)
        clock.move(8)
        assert plain(store.get((root,), "k", refresh_ttl=False)) == ((root,), "k", {"n": 2})
        store.put((root,), "k", {"n": 3})
        clock.move(10_000)
        assert plain(store.get((root,), "k")) == ((root,), "k", {"n": 3})

    def test_an_expired_key_can_be_put_again(self, store: BaseStore, root: str, clock: Clock) -> None:
        store.put((root,), "k", {"n": 1}, ttl=1)
        clock.move(2)
        store.put((root,), "k", {"n": 2}, ttl=1)
        assert plain(store.get((root,), "k")) == ((root,), "k", {"n": 2})

    def test_a_clock_that_goes_back_loses_nothing_and_brings_no_old_value(
        self, store: BaseStore, root: str, clock: Clock
    ) -> None:
        store.put((root,), "k", {"n": 1}, ttl=10)
        store.put((root,), "gone", {"n": 1})
        clock.move(5)
        store.put((root,), "k", {"n": 2}, ttl=10)
        store.delete((root,), "gone")
        clock.move(-60)
        assert plain(store.get((root,), "k")) == ((root,), "k", {"n": 2})
        assert plain(store.search((root,))) == [((root,), "k", {"n": 2})]
        assert store.get((root,), "gone") is None
        store.put((root,), "k", {"n": 3}, ttl=10)
        assert plain(store.get((root,), "k", refresh_ttl=False)) == ((root,), "k", {"n": 3})
        clock.move(11)
        assert store.get((root,), "k") is None

    def test_what_replaces_an_expired_value_does_so_for_a_clock_that_goes_back(
        self, store: BaseStore, root: str, clock: Clock
    ) -> None:
        store.put((root,), "k", {"n": 1}, ttl=10)
        store.put((root,), "gone", {"n": 1}, ttl=10)
        clock.move(11)
        store.put((root,), "k", {"n": 2})
        store.delete((root,), "gone")
        clock.move(-5)
        assert plain(store.get((root,), "k")) == ((root,), "k", {"n": 2})
        assert plain(store.search((root,))) == [((root,), "k", {"n": 2})]
        store.delete((root,), "k")
        assert store.get((root,), "k") is None
        assert store.search((root,)) == []

    def test_a_sweep_removes_what_has_expired_only(self, store: BaseStore, root: str, clock: Clock) -> None:
        store.put((root,), "short", {"n": 1}, ttl=1)
        store.put((root,), "long", {"n": 2}, ttl=100)
        clock.move(2)
        sweep: Callable[[], int] = cast("Any", store).sweep_ttl
        assert sweep() == 1
        assert sweep() == 0
        clock.move(-2)
        assert keys(store.search((root,))) == ["long"]


def _under(root: str, op: Any) -> Any:
    """Return an operation with another first label."""

    def moved(path: Sequence[str]) -> Namespace:
        return tuple(root if label == "root" else label for label in path)

    if isinstance(op, ListNamespacesOp):
        conditions = op.match_conditions or ()
        return op._replace(match_conditions=tuple(each._replace(path=moved(each.path)) for each in conditions))
    field = "namespace_prefix" if isinstance(op, SearchOp) else "namespace"
    changes: Mapping[str, Any] = {field: moved(getattr(op, field))}
    return op._replace(**changes)
