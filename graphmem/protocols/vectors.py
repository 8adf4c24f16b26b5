"""Protocol of a vector index outside the store's rows."""

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
    """A search result.

    Attributes
    ----------
    scope, key
        Scope and key of the match.
    score
        Cosine of the query vector with the nearest of the key's vectors, in [−1, 1].
    """

    scope: Scope
    key: str
    score: float


@dataclass(frozen=True, slots=True)
class VectorState:
    """Synchronization state of a scope: how far the index has applied the store's entries.

    Attributes
    ----------
    model, generation
        `IndexState` of the store at that time.
    position
        Position of the last applied entry.
    last, last_position
        Key and position of the last applied entry other than a name; they detect that the store was replaced.
    """

    model: str
    generation: int
    position: int
    last: str = ""
    last_position: int = 0


class VectorIndex(Protocol):
    """Nearest neighbor search by cosine within scopes; all data can be rebuilt from the store.

    `graphmem.index.follower.VectorFollower` copies the entries of a store into the index. Vectors are finite and
    nonzero, not necessarily of unit length. The engine filters by scope during the search, so the result is the
    nearest keys of the given scopes (recall ≥ 0.99) regardless of other scopes. Any method may be called from any
    thread.

    Every method raises `IndexUnavailable` if the engine can't be reached, opened or written.
    """

    @abstractmethod
    def upsert(self, scope: Scope, kind: IndexKind, items: Sequence[tuple[str, VectorRows]]) -> None:
        """Replace the vectors of keys; a key without vectors is deleted.

        Raises
        ------
        IndexMismatch
            If the index was built with vectors of another dimension.
        """
        ...

    @abstractmethod
    def delete(self, scope: Scope, kind: IndexKind, keys: Sequence[str]) -> None:
        """Remove keys; absent ones are ignored."""
        ...

    @abstractmethod
    def search(
        self, scopes: Sequence[Scope], kind: IndexKind, vector: NDArray[np.float32], *, limit: int
    ) -> list[VectorHit]:
        """Return the nearest keys of these scopes, best first and by key on ties; each key once.

        Parameters
        ----------
        scopes
            Scopes to search; none returns an empty list.
        kind
            Kind of entries.
        vector
            Query vector, shape (dimension,).
        limit
            Maximum number of keys.

        Raises
        ------
        IndexMismatch
            If the index was built with vectors of another dimension.
        """
        ...

    @abstractmethod
    def count(self, scope: Scope, kind: IndexKind) -> int:
        """Return the number of vectors of a scope."""
        ...

    @abstractmethod
    def state(self, scope: Scope) -> VectorState | None:
        """Return the last state recorded by `set_state`, or None for an empty scope."""
        ...

    @abstractmethod
    def set_state(self, scope: Scope, state: VectorState) -> None:
        """Record the synchronization state of a scope; earlier upserts become durable no later than the state."""
        ...

    @abstractmethod
    def clear(self, scope: Scope) -> None:
        """Remove the state of a scope, then its vectors, so that a crash leaves no state with partial vectors."""
        ...

    @abstractmethod
    def reset(self) -> None:
        """Remove all vectors and states of all scopes, and the dimension of the index."""
        ...

    @abstractmethod
    def diagnose(self) -> list[tuple[str, bool, str]]:
        """Return (check, passed, detail) for `graphmem doctor`; never raises and shows no secrets."""
        ...

    @abstractmethod
    def close(self) -> None:
        """Release files and connections; further calls have no effect."""
        ...
