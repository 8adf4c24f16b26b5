"""Which known entity a new name means, by what it means (spec: ingestion, resolve, step c).

The vectors of the new names of a batch are made, compared and, where they leave doubt, shown to an LLM before the
write begins: no lock is held while a model thinks. In the write, under the lock on the names, only what came in
meanwhile is compared as well.

A bulk load brings thousands of names, and the model takes a thousand times as long for one as the store. Vectors alone
only join names of the same words (`obstacle`), so that there the others are stored without a vector, which is made
later: by the work in the background, or by the first question that needs it.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from graphmem.embed import Embedder
from graphmem.errors import BackendUnavailable, StoreReadOnly
from graphmem.index.arrays import GrowingArray
from graphmem.index.entity_vectors import EntityVectors, Vectors, entity_entry, waiting_entry
from graphmem.ingest.resolution import EntityMatcher, EntityMention
from graphmem.models import Changes, Entity, IndexEntry, MergeMethod, Scope
from graphmem.protocols import GraphBackend
from graphmem.text.name_rules import numbers_differ, obstacle, spellings

_log = logging.getLogger(__name__)

_WAITING_AT_ONCE = 256  # entities without a vector that a batch takes along
_PAIRED = 64  # names of a batch that share a spelling: more are all embedded
_INDEXED_AT_ONCE = 64  # of them, between two looks at the clock

AskSame = Callable[[str, Sequence[str]], Sequence[int]]
"""(new entity, known entities) → positions of the known ones that are the same as the new one; may raise."""

Key = tuple[str, str]
"""Canonical name and type."""


@dataclass(slots=True)
class Prepared:
    """What was found out about the new names of a batch before its write."""

    scope: Scope
    model: str
    vectors: dict[Key, Vectors]
    later: dict[Key, EntityMention] = field(default_factory=dict[Key, EntityMention])
    judged: dict[Key, dict[str, bool]] = field(default_factory=dict[Key, "dict[str, bool]"])


class Outdated(Exception):
    """Another writer has brought an entity that a name without a vector has to be compared with."""


class SimilarEntities:
    """Finds the known entity that a new name means.

    Parameters
    ----------
    backend
        The store.
    embedder
        Gives the vectors of "name: summary".
    ask
        The judge of doubtful pairs; None leaves them apart.
    merge_at, ask_at
        Cosine from which two are the same unless their names speak against it, and from which there is doubt.
    most_questions
        How often the judge is asked for one batch.
    resolves
        If False, vectors are only made and kept: for what else compares entities.
    """

    def __init__(
        self,
        backend: GraphBackend,
        embedder: Embedder,
        ask: AskSame | None = None,
        *,
        merge_at: float = 0.85,
        ask_at: float = 0.7,
        most_questions: int = 20,
        resolves: bool = True,
    ) -> None:
        self._backend = backend
        self._embedder = embedder
        self._ask = ask
        self._merge_at = merge_at
        self._ask_at = ask_at
        self._most_questions = most_questions
        self._resolves = resolves
        self.vectors = EntityVectors(backend)
        self._complete: dict[Scope, int] = {}
        self._deferred: set[Scope] = set()

    def prepare(self, scope: Scope, things: Sequence[EntityMention], *, bulk: bool = False) -> Prepared | None:
        """Make and compare the vectors of the names that aren't known, and ask the judge; not inside of a transaction.

        Parameters
        ----------
        scope
            Where they are to be known.
        things
            The names of a batch.
        bulk
            Without a judge, only make the vectors that decide something now; `index_some` makes the others.

        Returns
        -------
        None where there is nothing to compare, or something failed: then the names are new entities.
        """
        try:
            state = self._backend.index_state(scope)
            if state.model not in (None, self._embedder.model_name):
                return None  # vectors of two models can't be compared; reindex makes new ones
            bulk = bulk and self._ask is None
            if not bulk:
                self._take_along(scope, _WAITING_AT_ONCE, state.generation)
            new = self._unknown(scope, things)
            if not new:
                return None
            now = self._to_compare(scope, new) if bulk else new
            made = self._embedder.vectors([_text(thing.display, thing.summary) for thing in now.values()])
            prepared = Prepared(scope, self._embedder.model_name, dict(zip(now, made, strict=True)))
            prepared.later = {key: thing for key, thing in new.items() if key not in now}
            if prepared.later:
                self._deferred.add(scope)
                self._complete.pop(scope, None)
            if self._ask is not None and self._resolves:
                self._judge(prepared, new)
        except BackendUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a model raises, the write goes on
            _log.warning("scope %s: new names aren't compared with known ones: %s", scope, error)
            return None
        return prepared

    def of(self, prepared: Prepared, known: Sequence[tuple[str, Entity]]) -> EntityMatcher:
        """Return what resolves the names of a batch that are still unknown; inside of the transaction.

        Parameters
        ----------
        prepared
            What `prepare` returned.
        known
            (name, entity) of the names that are known by now.

        Raises
        ------
        Outdated
            If a name has no vector yet, and has to be compared with what came in meanwhile.
        """
        built = self._backend.index_state(prepared.scope).model
        if built not in (None, prepared.model):
            return _Nothing()
        found = {(name, entity.entity_type) for name, entity in known}
        if self._alike(prepared.scope, {key: thing for key, thing in prepared.later.items() if key not in found})[0]:
            raise Outdated
        open_keys = [key for key in prepared.vectors if key not in found] if self._resolves else []
        asked = [(kind, prepared.vectors[name, kind]) for name, kind in open_keys]
        hits = self.vectors.nearest(prepared.scope, asked, self._ask_at)
        entities = self._entities(prepared.scope, hits)
        near = {
            key: [(score, entities[i]) for score, i in best if i in entities and entities[i].entity_type == key[1]]
            for key, best in zip(open_keys, hits, strict=True)
        }
        return _Compared(prepared, near, self._merge_at if self._resolves else math.inf)

    def index_some(self, scope: Scope, limit: int) -> bool:
        """Make some of the vectors that bulk loads have left; return whether it was the last of them.

        Raises
        ------
        EmbeddingFailed
            If the model fails.
        """
        if scope in self._deferred:
            state = self._backend.index_state(scope)
            if state.model in (None, self._embedder.model_name) and self._take_along(scope, limit, state.generation):
                return False
            self._deferred.discard(scope)
        return True

    def index_waiting(self, scope: Scope, seconds: float) -> None:
        """Make vectors that are missing, for a limited number of seconds, before something is found by them."""
        deadline = time.monotonic() + seconds
        state = self._backend.index_state(scope)
        if state.model not in (None, self._embedder.model_name):
            return
        with suppress(StoreReadOnly):
            while self._take_along(scope, _INDEXED_AT_ONCE, state.generation) and time.monotonic() < deadline:
                pass

    def _to_compare(self, scope: Scope, new: dict[Key, EntityMention]) -> dict[Key, EntityMention]:
        """Return the names that vectors may join: there is another one of the same words."""
        owners: dict[Key, list[Key]] = {}
        for key, thing in new.items():
            for spelling in spellings(thing.display, key[1]):
                owners.setdefault((spelling, key[1]), []).append(key)
        alike, waiting = self._alike(scope, new)
        if waiting:
            self._index(scope, waiting)
        for keys in owners.values():
            if len(keys) > _PAIRED:
                alike.update(keys)
                continue
            for one, other in combinations(keys, 2):
                if obstacle(new[one].display, new[other].display, one[1]) is None:
                    alike.update((one, other))
        return {key: thing for key, thing in new.items() if key in alike}

    def _alike(self, scope: Scope, new: Mapping[Key, EntityMention]) -> tuple[set[Key], list[str]]:
        """Return the names for which there are known entities of the same words, and which of these lack vectors."""
        if not new:
            return set(), []
        names = {(thing.display, key[1]): key for key, thing in new.items()}
        found, waiting = self.vectors.spelled_alike(scope, names, self._embedder.dimension)
        return {names[name] for name in found}, waiting

    def _unknown(self, scope: Scope, things: Sequence[EntityMention]) -> dict[Key, EntityMention]:
        """Return the things that nothing of their type goes by; of a name that comes twice the one that says more."""
        names = list(dict.fromkeys(thing.canonical for thing in things))
        known: dict[str, set[str]] = {}
        for name, entity in self._backend.resolve_names(scope, names):
            known.setdefault(name, set()).add(entity.entity_type)
        new: dict[Key, EntityMention] = {}
        for thing in things:
            types = known.get(thing.canonical, set())
            kind = thing.entity_type or thing.usual_type or "concept"
            if (thing.entity_type is None and types) or kind in types:
                continue
            key = (thing.canonical, kind)
            if key not in new or (thing.summary and not new[key].summary):
                new[key] = thing
        return new

    def _entities(self, scope: Scope, hits: Sequence[Sequence[tuple[float, str]]]) -> dict[str, Entity]:
        ids = list(dict.fromkeys(i for best in hits for _, i in best))
        return self._backend.get_entities([scope], ids) if ids else {}

    def _judge(self, prepared: Prepared, new: dict[Key, EntityMention]) -> None:
        hits = self.vectors.nearest(
            prepared.scope, [(kind, vector) for (_, kind), vector in prepared.vectors.items()], self._ask_at
        )
        entities = self._entities(prepared.scope, hits)
        asked = 0
        for (key, thing), best in zip(new.items(), hits, strict=True):
            near = [(score, entities[i]) for score, i in best if i in entities]
            if not near or _sure(thing, near, self._merge_at) is not None or asked == self._most_questions:
                continue
            doubtful = [entity for _, entity in near if not numbers_differ(thing.display, entity.name)]
            if doubtful:
                asked += 1
                prepared.judged[key] = self._asked(thing, doubtful)

    def _asked(self, thing: EntityMention, doubtful: Sequence[Entity]) -> dict[str, bool]:
        assert self._ask is not None
        try:
            same = self._ask(_text(thing.display, thing.summary), [_text(e.name, e.summary) for e in doubtful])
        except Exception as error:  # noqa: BLE001 - whatever the judge's library raises, the write goes on
            _log.warning("whether a new name is known under another couldn't be judged: %s", error)
            return {}
        return {doubtful[i].id: True for i in same if 0 <= i < len(doubtful)}

    def _take_along(self, scope: Scope, limit: int, generation: int) -> bool:
        """Make vectors of known entities that have none: of a bulk load, or written while there was no model.

        Returns whether there were some.
        """
        if self._complete.get(scope) == generation:
            return False
        waiting = self._backend.find_unindexed(scope, "entity", limit=limit)
        if not waiting:
            self._complete[scope] = generation
            return False
        self._index(scope, waiting)
        return True

    def _index(self, scope: Scope, ids: Sequence[str]) -> None:
        """Make and keep the vectors of known entities."""
        since = self._backend.erasure_token(scope)
        found = list(self._backend.get_entities([scope], ids).values())
        made = self._embedder.vectors([_text(e.name, e.summary) for e in found])
        model = self._embedder.model_name
        entries = [entity_entry(e.id, e.entity_type, model, v) for e, v in zip(found, made, strict=True)]
        self._backend.write_unless_erased(scope, Changes(index=tuple(entries)), since=since)


class _Nothing:
    """No name is compared."""

    def find(self, thing: EntityMention, kind: str) -> None:
        """Find nothing."""

    def keep(self, entity: Entity) -> None:
        """Keep nothing."""

    entries: tuple[IndexEntry, ...] = ()


class _Compared:
    """The names of a batch beside the nearest known entities, and beside those that the batch brings."""

    def __init__(self, prepared: Prepared, near: dict[Key, list[tuple[float, Entity]]], merge_at: float) -> None:
        self._prepared = prepared
        self._near = near
        self._merge_at = merge_at
        self._new: dict[str, tuple[list[Entity], GrowingArray[np.float32]]] = {}
        self._entries: list[IndexEntry] = []

    @property
    def entries(self) -> tuple[IndexEntry, ...]:
        """What the index keeps of the new entities."""
        return tuple(self._entries)

    def find(self, thing: EntityMention, kind: str) -> tuple[Entity, MergeMethod, float] | None:
        """Return the entity that a new name means, how that was decided, and the cosine."""
        key = (thing.canonical, kind)
        vector = self._prepared.vectors.get(key)
        if vector is None:
            return None
        near = list(self._near.get(key, ()))
        if kind in self._new:
            entities, rows = self._new[kind]
            scores = rows.rows @ vector
            likely = np.flatnonzero(scores >= self._merge_at).tolist()
            near += [(min(1.0, float(scores[i])), entities[i]) for i in likely]
        near.sort(key=lambda hit: (-hit[0], hit[1].id))
        if (sure := _sure(thing, near, self._merge_at)) is not None:
            return sure[1], "vectors", sure[0]
        judged = self._prepared.judged.get(key, {})
        same = next((hit for hit in near if judged.get(hit[1].id)), None)
        return None if same is None else (same[1], "llm", same[0])

    def keep(self, entity: Entity) -> None:
        """Take in a new entity: the next names are compared with it, too."""
        vector = self._prepared.vectors.get((entity.canonical_name, entity.entity_type))
        if vector is not None:
            width = len(vector)
            entities, rows = self._new.setdefault(entity.entity_type, ([], GrowingArray(np.float32, width)))
            entities.append(entity)
            rows.extend(vector[None])
            self._entries.append(entity_entry(entity.id, entity.entity_type, self._prepared.model, vector))
        elif (entity.canonical_name, entity.entity_type) in self._prepared.later:
            self._entries.append(waiting_entry(entity.id, entity.entity_type))


def _sure(thing: EntityMention, near: Sequence[tuple[float, Entity]], merge_at: float) -> tuple[float, Entity] | None:
    """Return the nearest entity that the vectors alone may decide for."""
    return next(
        (
            (score, entity)
            for score, entity in near
            if score >= merge_at and obstacle(thing.display, entity.name, entity.entity_type) is None
        ),
        None,
    )


def _text(name: str, summary: str) -> str:
    return f"{name}: {summary}" if summary else name
