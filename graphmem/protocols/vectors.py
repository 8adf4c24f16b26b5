"""An index of vectors outside of a store's rows: what it must do, whatever serves it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from graphmem.models import IndexKind, Scope

VectorRows = NDArray[np.float32]
"""Vectors of one key, shape (v, dimension)."""


@dataclass(frozen=True, slots=True)
class VectorHit:
    """A key that was found.

    Attributes
    ----------
    scope, key
        What was found, and where.
    score
        Cosine of the question with the nearest of the key's vectors, in [−1, 1].
    """

    scope: Scope
    key: str
    score: float


@dataclass(frozen=True, slots=True)
class VectorState:
    """Up to where an index has taken a scope's entries in from the store.

    Attributes
    ----------
    model, generation
        `IndexState` of the store at that time.
    position
        Of the last entry.
    last, last_position
        Key and position of the last entry but names: they tell whether this is the store that the index followed.
    """

    model: str
    generation: int
    position: int
    last: str = ""
    last_position: int = 0


class VectorIndex(Protocol):
    """Nearest keys by cosine, within scopes; keeps nothing that the store couldn't give it again.

    `graphmem.vectors.VectorFollower` brings the entries of a store here. Vectors are finite and not zero; they need no
    unit length. The scope is a filter inside of the engine, so a search gives the true nearest of the scopes that it
    names (recall ≥ 0.99), whatever other scopes hold. Any method may be called from any thread.

    Every method raises `IndexUnavailable` if the engine can't be reached, opened or written.
    """

    @abstractmethod
    def upsert(self, scope: Scope, kind: IndexKind, items: Sequence[tuple[str, VectorRows]]) -> None:
        """Store the vectors of keys in place of what these keys had; a key without vectors is deleted.

        Raises
        ------
        IndexMismatch
            If the index was built with vectors of another dimension.
        """
        ...

    @abstractmethod
    def delete(self, scope: Scope, kind: IndexKind, keys: Sequence[str]) -> None:
        """Remove keys; absent ones don't matter."""
        ...

    @abstractmethod
    def search(
        self, scopes: Sequence[Scope], kind: IndexKind, vector: NDArray[np.float32], *, limit: int
    ) -> list[VectorHit]:
        """Return the nearest keys of these scopes, best first, of equal ones the smaller key; each key once.

        Parameters
        ----------
        scopes
            Where to look; none finds nothing.
        kind
            Of what.
        vector
            Shape (dimension,).
        limit
            Keys at most.

        Raises
        ------
        IndexMismatch
            If the index was built with vectors of another dimension.
        """
        ...

    @abstractmethod
    def count(self, scope: Scope, kind: IndexKind) -> int:
        """Return how many vectors a scope has."""
        ...

    @abstractmethod
    def state(self, scope: Scope) -> VectorState | None:
        """Return what `set_state` recorded last, None for a scope that holds nothing."""
        ...

    @abstractmethod
    def set_state(self, scope: Scope, state: VectorState) -> None:
        """Record how far a scope was taken in, after what was upserted before is as durable as this."""
        ...

    @abstractmethod
    def clear(self, scope: Scope) -> None:
        """Remove the state of a scope and then its vectors: what a crash leaves in between has no state."""
        ...

    @abstractmethod
    def reset(self) -> None:
        """Remove everything, of all scopes, with the dimension that it was built with."""
        ...

    @abstractmethod
    def diagnose(self) -> list[tuple[str, bool, str]]:
        """Return (what, whether it is well, detail) for `graphmem doctor`; raises nothing and shows no secrets."""
        ...

    @abstractmethod
    def close(self) -> None:
        """Release files and connections; a second call does nothing."""
        ...
