"""Base of the state machines with random operations: two stores whose results have to agree."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import fields
from functools import partial
from itertools import count
from pathlib import Path

from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import AsOf
from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend
from graphmem.testing.base import Contents, StoreTests, everything, own_scopes
from graphmem.testing.rows import day, new_world, world


class PairOfStores(RuleBasedStateMachine):
    """State machine that applies the same operations to the store under test and a memory store, and compares results.

    Parameters
    ----------
    store
        The store under test; the scopes of the running test are empty.
    is_shared
        Whether others use the store; then there are no operations on the whole store.
    """

    def __init__(self, store: GraphBackend, *, is_shared: bool) -> None:
        super().__init__()
        self._store = store
        self._is_shared = is_shared
        self._oracle = open_backend("memory://")

    def teardown(self) -> None:
        """Close the store in memory."""
        self._oracle.close()

    def read(self, act: Callable[[GraphBackend], object]) -> None:
        """Read from both stores and compare the results."""
        expected, found = (outcome(partial(act, store)) for store in (self._oracle, self._store))
        assert found == expected

    def write(self, act: Callable[[GraphBackend], object], *, same_error: bool = True) -> None:
        """Write to both stores and compare the results or errors, and then all rows.

        With `same_error` False, all errors are equal: a write that is invalid in two ways may report either.
        """
        expected, found = (outcome(partial(act, store)) for store in (self._oracle, self._store))
        if same_error or "raised" not in (expected[0], found[0]):
            assert found == expected
        else:
            assert found[0] == expected[0], f"expected {expected}, found {found}"
        self.compare()

    def compare(self) -> None:
        """Compare all rows of the stores."""
        ours, theirs = everything(self._store), everything(self._oracle)
        for scope, expected in theirs.items():
            for part in (field.name for field in fields(Contents)):
                assert getattr(ours[scope], part) == getattr(expected, part), f"{part} of scope {scope}"
        assert own_scopes(self._store) == self._oracle.scopes()
        assert _own_claims(self._store) == sorted(self._oracle.claim_owners(day(0)))


def run_machine(machine: type[PairOfStores], tests: StoreTests, store: GraphBackend, tmp_path: Path) -> None:
    """Run a machine, each scenario on a new store, or in new scopes of `store` if the tests share it."""
    numbers = count()

    class Machine(machine):
        def __init__(self) -> None:
            self._scenario = ExitStack()
            world = self._scenario.enter_context(new_world())
            if tests.shares_store:
                self._scenario.callback(lambda: tests.discard(store, world.scopes))
                super().__init__(store, is_shared=True)
            else:
                directory = tmp_path / f"run{next(numbers)}"
                directory.mkdir()
                own = self._scenario.enter_context(closing(tests.open_store(directory)))
                super().__init__(own, is_shared=False)

        def teardown(self) -> None:
            super().teardown()
            self._scenario.close()

    run_state_machine_as_test(Machine, settings=tests.stateful_settings)


def _own_claims(store: GraphBackend) -> list[str]:
    """Return the owners of the running test that have claimed episodes."""
    return sorted(name for name in store.claim_owners(day(0)) if name.endswith(world().tag))


def outcome(work: Callable[[], object]) -> tuple[str, object]:
    """Return the result of a function, or the error that it raised."""
    try:
        return ("returned", work())
    except (Conflict, InvalidInput) as error:
        return ("raised", type(error).__name__)


def moment(days: tuple[int, int] | None) -> AsOf | None:
    """Return the point in time at two days of the tests' calendar."""
    return None if days is None else AsOf(day(days[0]), day(days[1]))
