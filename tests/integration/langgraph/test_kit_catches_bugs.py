"""The parity kit fails LangGraph stores that have a bug, and passes those that have none."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from langgraph.store.base import BaseStore

from graphmem.testing.langgraph import (
    FILTERS,
    Clock,
    LangGraphQueryTests,
    LangGraphStoreTests,
    LangGraphTTLTests,
)
from tests.integration.langgraph import broken_stores
from tests.integration.langgraph.broken_stores import Sound, Timed

RANDOM = "test_random_operations_have_the_results_of_langgraphs_store"

# (broken store, test class of the kit, tests that must all fail on it, with their parameters)
CAUGHT: list[tuple[str, type[Any], dict[str, dict[str, Any]]]] = [
    (
        "ComparesPrefixesAsText",
        LangGraphStoreTests,
        {RANDOM: {}, "test_labels_and_keys_of_any_characters_are_told_apart": {"label": "a"}},
    ),
    ("IgnoresOffsets", LangGraphStoreTests, {RANDOM: {}}),
    ("WritesBeforeItReads", LangGraphStoreTests, {RANDOM: {}, "test_a_batch_reads_what_was_there_before_it": {}}),
    ("KeepsTheFirstPut", LangGraphStoreTests, {RANDOM: {}, "test_a_batch_reads_what_was_there_before_it": {}}),
    (
        "FiltersByTheFirstLevel",
        LangGraphStoreTests,
        {"test_a_filter_matches_what_it_matches_in_langgraphs_store": {"wanted": FILTERS[15]}},
    ),
    ("MovesUpdatedItemsToTheEnd", LangGraphStoreTests, {RANDOM: {}}),
    ("TakesStarsForLabels", LangGraphStoreTests, {RANDOM: {}}),
    ("CutsNamespacesAfterThePage", LangGraphStoreTests, {RANDOM: {}}),
    ("RoundsNumbers", LangGraphStoreTests, {RANDOM: {}}),
    (
        "ForgetsAsyncWrites",
        LangGraphStoreTests,
        {"test_random_async_operations_have_the_results_of_langgraphs_store": {}},
    ),
    ("IndexesEverything", LangGraphQueryTests, {"test_an_item_that_is_not_indexed_is_listed_but_not_found": {}}),
    (
        "SearchesTheOldText",
        LangGraphQueryTests,
        {"test_a_query_finds_the_new_value_of_a_key_and_no_deleted_one": {}},
    ),
    ("NeverRefreshes", LangGraphTTLTests, {"test_a_read_begins_the_ttl_again": {"read": "get"}}),
    ("AlwaysRefreshes", LangGraphTTLTests, {"test_a_read_begins_the_ttl_again": {"read": "search"}}),
    ("ReturnsExpiredItems", LangGraphTTLTests, {"test_an_item_expires_and_is_gone_from_every_read": {}}),
    ("ReturnsExpiredItemsToQueries", LangGraphTTLTests, {"test_an_item_expires_and_is_gone_from_every_read": {}}),
    ("RefreshesOnGetAlone", LangGraphTTLTests, {"test_a_read_begins_the_ttl_again": {"read": "filter"}}),
    (
        "KeepsExpiredValuesBelowNewOnes",
        LangGraphTTLTests,
        {"test_what_replaces_an_expired_value_does_so_for_a_clock_that_goes_back": {}},
    ),
]


class TestASoundStore(LangGraphStoreTests):
    def make_store(self, tmp_path: Path, clock: Clock) -> BaseStore:
        del tmp_path, clock
        return Sound()


class TestASoundStoreWithAnIndex(LangGraphQueryTests):
    def make_store(self, tmp_path: Path, clock: Clock) -> BaseStore:
        del tmp_path, clock
        return Sound(indexed=True)


class TestASoundStoreWithTTLs(LangGraphTTLTests):
    def make_store(self, tmp_path: Path, clock: Clock) -> BaseStore:
        del tmp_path
        return Timed(clock)


@pytest.mark.full(store="TakesStarsForLabels")
@pytest.mark.full(store="MovesUpdatedItemsToTheEnd")
@pytest.mark.parametrize(
    ("store", "kit", "name", "arguments"),
    [(store, kit, name, arguments) for store, kit, tests in CAUGHT for name, arguments in tests.items()],
    ids=[f"{store}-{name}" for store, _, tests in CAUGHT for name in tests],
)
def test_a_bug_is_caught(store: str, kit: type[Any], name: str, arguments: dict[str, Any]) -> None:
    clock = Clock()
    broken: type[Any] = getattr(broken_stores, store)
    made: Any = broken(clock) if issubclass(broken, Timed) else broken(indexed=kit is LangGraphQueryTests)

    class Case(kit):
        random_settings = settings(LangGraphStoreTests.random_settings, phases=[Phase.generate], max_examples=100)

        def make_store(self, tmp_path: Path, clock: Clock) -> BaseStore:
            raise NotImplementedError  # the test gets its store as an argument

    case: Any = Case()
    test = getattr(case, name)
    given = {"store": made, "root": "root-label", "clock": clock, **arguments}
    with pytest.raises((AssertionError, ExceptionGroup)):
        test(**{each: given[each] for each in inspect.signature(test).parameters})


def test_every_broken_store_is_tried() -> None:
    source = Path(broken_stores.__file__).read_text("utf-8")
    stores = re.findall(r"^class (\w+)\((?:Sound|Timed)\)", source, flags=re.MULTILINE)
    assert [store for store in stores if store != "Timed"] == [store for store, _, _ in CAUGHT]
    assert len(CAUGHT) >= 8
