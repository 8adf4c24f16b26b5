"""In-memory vectors of the entities of a scope, with exact nearest neighbor search by type."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from graphmem.index.copies import MEMORY, Copies
from graphmem.index.stored_vectors import packed, unpacked
from graphmem.models import Entity, IndexEntry, Scope
from graphmem.models.arrays import GrowingArray
from graphmem.process import one_blas_thread
from graphmem.protocols import GraphBackend
from graphmem.text.names import obstacle, spellings

Vectors = NDArray[np.float32]

_PAGE = 2000
_ROWS, _QUESTIONS = 8192, 256  # block size of one product: 8 MB of scores
_PER_ENTITY = 600  # bytes of an entity besides its vector
NEAREST = 5


def entity_entry(entity_id: str, entity_type: str, model: str, vector: Vectors) -> IndexEntry:
    """Return the index entry of an entity: one vector, and the type within which it is compared."""
    return replace(waiting_entry(entity_id, entity_type), model=model, vectors=packed(vector), complete=True)


def waiting_entry(entity_id: str, entity_type: str) -> IndexEntry:
    """Return the incomplete index entry of an entity whose vector is computed later."""
    return IndexEntry(kind="entity", key=entity_id, detail=json.dumps({"type": entity_type}), complete=False)


@dataclass(slots=True)
class _OfType:
    """The vectors of one type, one row each; replaced and removed rows have an empty key."""

    keys: list[str]
    rows: GrowingArray[np.float16]


@dataclass(slots=True)
class _Copy:
    dimension: int
    generation: int
    position: int = 0
    types: dict[str, _OfType] = field(default_factory=dict[str, _OfType])
    places: dict[str, tuple[str, int]] = field(default_factory=dict[str, "tuple[str, int]"])
    seen: set[str] = field(default_factory=set[str])
    unnamed: dict[str, None] = field(default_factory=dict[str, None])
    spelled: dict[tuple[str, str], list[tuple[str, str]]] = field(
        default_factory=dict[tuple[str, str], "list[tuple[str, str]]"]
    )

    @property
    def nbytes(self) -> int:
        return sum(held.rows.nbytes for held in self.types.values()) + _PER_ENTITY * len(self.seen)

    def apply(self, entries: Iterable[IndexEntry]) -> None:
        for entry in entries:
            if entry.position <= self.position:
                continue  # already done by another thread
            self.position = entry.position
            if entry.key not in self.seen:
                self.seen.add(entry.key)
                self.unnamed[entry.key] = None
            if not entry.vectors:
                continue
            if (old := self.places.pop(entry.key, None)) is not None:
                self.types[old[0]].keys[old[1]] = ""
            kind = json.loads(entry.detail)["type"]
            held = self.types.setdefault(kind, _OfType([], GrowingArray(np.float16, self.dimension)))
            self.places[entry.key] = (kind, len(held.keys))
            held.keys.append(entry.key)
            held.rows.extend(unpacked(entry, self.dimension))

    def learn_names(self, ids: Sequence[str], entities: Mapping[str, Entity]) -> None:
        for entity_id in ids:
            if entity_id not in self.unnamed:
                continue  # already done by another thread
            del self.unnamed[entity_id]
            if (entity := entities.get(entity_id)) is not None:
                for key in spellings(entity.name, entity.entity_type):
                    self.spelled.setdefault((entity.entity_type, key), []).append((entity_id, entity.name))


class EntityVectors:
    """Cache of entity vectors, updated incrementally from the store's index.

    A row takes 2 bytes per dimension: 77 MB for 100,000 entities of dimension 384, and as much for their names.

    Parameters
    ----------
    backend
        The store.
    memory
        Maximum bytes of the vectors of all scopes; those used last are kept.
    """

    def __init__(self, backend: GraphBackend, memory: int = MEMORY) -> None:
        self._backend = backend
        self._copies: Copies[Scope, _Copy] = Copies(lambda copy: copy.nbytes, memory)
        self._lock = threading.Lock()

    def nearest(
        self, scope: Scope, questions: Sequence[tuple[str, Vectors]], at_least: float, *, limit: int = NEAREST
    ) -> list[list[tuple[float, str]]]:
        """Return for each (type, unit vector) the nearest entities of that type, as (cosine, id), best first.

        Parameters
        ----------
        scope
            Scope of the entities.
        questions
            Types and unit vectors by the model that the scope's index was built with.
        at_least
            Minimum cosine.
        limit
            Maximum number of entities for each.
        """
        if not questions:
            return []
        copy = self._fresh(scope, len(questions[0][1]), self._backend.index_state(scope).generation)
        found: list[list[tuple[float, str]]] = [[] for _ in questions]
        by_type: dict[str, list[int]] = {}
        for position, (kind, _) in enumerate(questions):
            by_type.setdefault(kind, []).append(position)
        for kind, positions in by_type.items():
            with self._lock:
                held = copy.types.get(kind)
                rows, keys = (held.rows.rows, list(held.keys)) if held else (None, [])
            if rows is None:
                continue
            for start in range(0, len(positions), _QUESTIONS):
                some = positions[start : start + _QUESTIONS]
                asked = np.stack([questions[i][1] for i in some])
                for i, best in zip(some, _nearest(rows, keys, asked, at_least, limit), strict=True):
                    found[i] = best
        return found

    def spelled_alike(
        self, scope: Scope, names: Iterable[tuple[str, str]], dimension: int
    ) -> tuple[set[tuple[str, str]], list[str]]:
        """Find known entities with a similar spelling and no obstacle to a match by vectors.

        Returns
        -------
        The (name, type) pairs with such entities, and the ids of these entities that have no vector yet.
        """
        copy = self._fresh(scope, dimension, self._backend.index_state(scope).generation)
        with self._lock:
            unnamed = list(copy.unnamed)
        for start in range(0, len(unnamed), _PAGE):
            ids = unnamed[start : start + _PAGE]
            entities = self._backend.get_entities([scope], ids)
            with self._lock:
                copy.learn_names(ids, entities)
        found, waiting = set[tuple[str, str]](), dict[str, None]()
        with self._lock:
            for name, kind in names:
                near = {pair for key in spellings(name, kind) for pair in copy.spelled.get((kind, key), ())}
                alike = [entity_id for entity_id, known in near if obstacle(name, known, kind) is None]
                if alike:
                    found.add((name, kind))
                    waiting.update(dict.fromkeys(i for i in alike if i not in copy.places))
        return found, list(waiting)

    def nearest_of_all(
        self, scope: Scope, generation: int, question: Vectors, at_least: float, limit: int
    ) -> list[tuple[float, str]]:
        """Return the nearest entities of any type, as (cosine, id), best first; see `nearest`.

        `generation` is the current generation of the scope's index.
        """
        copy = self._fresh(scope, len(question), generation)
        with self._lock:
            parts = [(held.rows.rows, list(held.keys)) for held in copy.types.values()]
        found = [hit for rows, keys in parts for hit in _nearest(rows, keys, question[None], at_least, limit)[0]]
        return sorted(found, key=lambda hit: (-hit[0], hit[1]))[:limit]

    @property
    def scopes(self) -> list[Scope]:
        """Scopes with vectors in memory."""
        with self._lock:
            return self._copies.cached_keys()

    def drop_copies(self, scope: Scope) -> None:
        """Drop the vectors of a scope."""
        with self._lock:
            self._copies.drop(lambda kept: kept == scope)

    def _fresh(self, scope: Scope, dimension: int, generation: int) -> _Copy:
        """Return the up-to-date copy of a scope.

        The store is read without holding the lock, so that a thread in a transaction never waits here.
        """
        with self._lock:
            copy = self._copies.get(scope)
            if copy is None or (copy.generation, copy.dimension) != (generation, dimension):
                copy = _Copy(dimension, generation)
            self._copies.put(scope, copy)
            after = copy.position
        for page in self._backend.entry_pages(scope, kind="entity", after=after, chunk=_PAGE):
            with self._lock:
                copy.apply(page)
        with self._lock:
            self._copies.measure(scope, copy)
        return copy


@one_blas_thread
def _nearest(
    rows: NDArray[np.float16], keys: Sequence[str], asked: Vectors, at_least: float, limit: int
) -> list[list[tuple[float, str]]]:
    found: list[list[tuple[float, str]]] = [[] for _ in range(len(asked))]
    for start in range(0, len(rows), _ROWS):
        scores = rows[start : start + _ROWS].astype(np.float32) @ asked.T
        row_at, question_at = np.nonzero(scores >= at_least)
        for row, question in zip(row_at.tolist(), question_at.tolist(), strict=True):
            if key := keys[start + row]:
                found[question].append((min(1.0, float(scores[row, question])), key))
        found = [sorted(best, key=lambda hit: (-hit[0], hit[1]))[:limit] for best in found]
    return found
