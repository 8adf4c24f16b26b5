"""The tests of vector indexes fail one that has a bug: the exact index, spoilt (`TestExact` is the sound one)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from graphmem.errors import IndexMismatch
from graphmem.models import IndexKind, Scope
from graphmem.protocols import VectorIndex
from graphmem.protocols.vectors import VectorHit, VectorRows
from graphmem.testing.rows import new_world
from graphmem.testing.vectors import VectorIndexTests
from graphmem.vectors import ExactVectorIndex


class ResetsOneKind(ExactVectorIndex):
    """Resets the vectors of episodes only."""

    def reset(self) -> None:
        self._states.clear()
        self._dimensions.pop("episode", None)
        for place in [place for place in self._matrices if place[1] == "episode"]:
            del self._matrices[place]


class ResetsOneScope(ExactVectorIndex):
    """Leaves the vectors of all scopes but the first."""

    def reset(self) -> None:
        self._states.clear()
        self._dimensions.clear()
        for place in list(self._matrices)[:1]:
            del self._matrices[place]


class OrdersTiesByLargestKey(ExactVectorIndex):
    """Returns the largest key first where several are equally near."""

    def search(self, scopes: Sequence[Scope], kind: IndexKind, vector: VectorRows, *, limit: int) -> list[VectorHit]:
        found = super().search(scopes, kind, vector, limit=10**6)
        return sorted(found, key=lambda hit: (hit.score, hit.key), reverse=True)[:limit]


class SearchesAScopeTwice(ExactVectorIndex):
    """Searches a scope as often as it is named."""

    def search(self, scopes: Sequence[Scope], kind: IndexKind, vector: VectorRows, *, limit: int) -> list[VectorHit]:
        search = super().search
        found = [hit for scope in scopes for hit in search([scope], kind, vector, limit=limit)]
        return sorted(found, key=lambda hit: (-hit.score, hit.key))[:limit]


class Case(VectorIndexTests):
    """The tests, called with an index each."""

    __test__ = False

    def open_index(self, tmp_path: Path) -> VectorIndex:
        raise NotImplementedError  # the test gets its index as an argument


@pytest.mark.parametrize(
    ("index", "name"),
    [
        (ResetsOneKind, "test_after_a_reset_another_dimension_is_taken"),
        (ResetsOneScope, "test_after_a_reset_another_dimension_is_taken"),
        (OrdersTiesByLargestKey, "test_of_equally_near_keys_the_smallest_come_first"),
        (SearchesAScopeTwice, "test_a_scope_that_is_named_twice_is_searched_once"),
    ],
)
def test_a_bug_is_caught(index: type[ExactVectorIndex], name: str) -> None:
    test: Any = getattr(Case(), name)
    with new_world(), pytest.raises((AssertionError, IndexMismatch)):
        test(index())
