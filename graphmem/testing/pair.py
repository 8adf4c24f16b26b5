"""What the random operations share: two stores that have to agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from itertools import count
from pathlib import Path

from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from graphmem.errors import Conflict, InvalidInput
from graphmem.models import AsOf
from graphmem.protocols import GraphBackend
from graphmem.registry import open_backend
from graphmem.testing.base import Contents, everything
from graphmem.testing.rows import day


class PairOfStores(RuleBasedStateMachine):
    """Does the same to the store under test and to a store in memory, and compares what they say.

    Parameters
    ----------
    store
        A fresh, empty store to test; closed at the end.
    """

    def __init__(self, store: GraphBackend) -> None:
        super().__init__()
        self._store = store
        self._oracle = open_backend("memory://")

    def teardown(self) -> None:
        """Close both stores."""
        self._store.close()
        self._oracle.close()

    def read(self, act: Callable[[GraphBackend], object]) -> None:
        """Ask both stores and compare what they say."""
        expected, found = (outcome(partial(act, store)) for store in (self._oracle, self._store))
        assert found == expected

    def write(self, act: Callable[[GraphBackend], object], *, same_error: bool = True) -> None:
        """Do something to both stores and compare what they return or raise, and then all they hold.

        With `same_error` False any refusal equals any other: a write that is wrong in two ways may name either.
        """
        expected, found = (outcome(partial(act, store)) for store in (self._oracle, self._store))
        if same_error or "raised" not in (expected[0], found[0]):
            assert found == expected
        else:
            assert found[0] == expected[0], f"expected {expected}, found {found}"
        self.compare()

    def compare(self) -> None:
        """Compare all that the stores hold."""
        ours, theirs = everything(self._store), everything(self._oracle)
        for scope, expected in theirs.items():
            for part in (field.name for field in fields(Contents)):
                assert getattr(ours[scope], part) == getattr(expected, part), f"{part} of scope {scope}"
        assert self._store.scopes() == self._oracle.scopes()
        assert sorted(self._store.claim_owners()) == sorted(self._oracle.claim_owners())


def run_machine(
    machine: type[PairOfStores], open_store: Callable[[Path], GraphBackend], tmp_path: Path, chosen: settings
) -> None:
    """Run a machine, each scenario on a fresh store."""
    numbers = count()

    class Machine(machine):
        def __init__(self) -> None:
            directory = tmp_path / f"run{next(numbers)}"
            directory.mkdir()
            super().__init__(open_store(directory))

    run_state_machine_as_test(Machine, settings=chosen)


def outcome(work: Callable[[], object]) -> tuple[str, object]:
    """Return what some work returned, or which refusal it raised."""
    try:
        return ("returned", work())
    except (Conflict, InvalidInput) as error:
        return ("raised", type(error).__name__)


def moment(days: tuple[int, int] | None) -> AsOf | None:
    """Return the moment of two days of the tests' calendar."""
    return None if days is None else AsOf(day(days[0]), day(days[1]))
