"""Entity matching of new names by embedding similarity.

Embedding and comparing the new names of a batch, and asking an LLM about doubtful pairs, happen before the write
transaction, so that no lock is held during model calls. Inside the transaction, under the lock on the names, only
entities stored in the meantime are compared as well.

A bulk load contains thousands of names, and embedding one takes a thousand times as long as storing it. Without a
judge, vectors only merge names made of the same words (`obstacle`). A bulk load therefore embeds only names that share
their words with another one; the others are stored without a vector, which is computed later in the background or by
the first search that needs it.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from graphmem.embed import Embedder
from graphmem.errors import BackendUnavailable, StoreReadOnly
from graphmem.index.copies import MEMORY
from graphmem.index.entity_vectors import EntityVectors, Vectors, entity_entry, waiting_entry
from graphmem.index.follower import UnindexedScan
from graphmem.ingest.interpretation import EntityMention
from graphmem.ingest.judges import Ask
from graphmem.ingest.resolution import EntityMatcher
from graphmem.models import (
    Changes,
    Entity,
    EntityQuery,
    IndexEntry,
    MergeMethod,
    Scope,
)
from graphmem.models.arrays import GrowingArray
from graphmem.process import one_blas_thread
from graphmem.protocols import GraphBackend
from graphmem.text.names import is_same_spelling, may_be_same, numbers_differ, obstacle, short_forms, spellings
from graphmem.text.normalize import split_words

_log = logging.getLogger(__name__)

_WAITING_AT_ONCE = 256  # unindexed entities embedded per batch
_PAIRED = 64  # most names of one spelling compared in pairs; larger groups are embedded whole
_FORM_WORDS, _FORMS, _LISTED = 60, 60, 500  # words looked up for other forms of names; entities compared
_LONGEST_INITIALS = 4
_INDEXED_AT_ONCE = 64  # entities embedded between two checks of the deadline
_SCAN_INTERVAL = 30.0  # seconds between two scans for entities without a vector: other processes may store some
_SCAN_SHARE = 100  # the interval is at least this many times as long as a scan, which reads all entities of a scope

Key = tuple[str, str]
"""Canonical name and type."""


@dataclass(slots=True)
class Prepared:
    """Vectors and judgments of the new names of a batch, computed before its write.

    Attributes
    ----------
    scope, model
        Scope of the names, and model of the vectors.
    vectors
        Vector of each new name that is compared.
    deferred
        New names without a vector; a later indexing computes it.
    judged
        New name → ids of the known entities that it is, by the judge.
    """

    scope: Scope
    model: str
    vectors: dict[Key, Vectors]
    deferred: dict[Key, EntityMention] = field(default_factory=dict[Key, EntityMention])
    judged: dict[Key, set[str]] = field(default_factory=dict[Key, "set[str]"])


class Outdated(Exception):
    """Raised when another writer stored an entity that must be compared with a name without a vector."""


class SimilarEntities:
    """Matcher of new names with known entities by vectors and, optionally, a judge.

    Parameters
    ----------
    backend
        The store.
    embedder
        Embeds "name: summary".
    ask
        The judge of doubtful pairs; None keeps them separate.
    merge_at, ask_at
        Cosine from which two entities are the same unless their names rule it out, and from which a pair is doubtful.
    most_questions
        Maximum number of names per batch that the judge is asked about, all in one call.
    resolves
        If False, vectors are only computed and stored, for other consumers that compare entities.
    memory
        Maximum bytes of the vectors in memory.
    """

    def __init__(
        self,
        backend: GraphBackend,
        embedder: Embedder,
        ask: Ask | None = None,
        *,
        merge_at: float = 0.85,
        ask_at: float = 0.7,
        most_questions: int = 20,
        resolves: bool = True,
        memory: int = MEMORY,
    ) -> None:
        self._backend = backend
        self._embedder = embedder
        self._ask = ask
        self._merge_at = merge_at
        self._ask_at = ask_at
        self._most_questions = most_questions
        self._resolves = resolves
        self.vectors = EntityVectors(backend, memory)
        self._complete: dict[Scope, tuple[int, float]] = {}
        """Scope → generation of an index that had all vectors, and the monotonic time of the next scan."""
        self._unindexed = UnindexedScan(backend)

    def prepare(self, scope: Scope, mentions: Sequence[EntityMention], *, bulk: bool = False) -> Prepared | None:
        """Embed and compare the unknown names of a batch and ask the judge. Call it outside of a transaction.

        Parameters
        ----------
        scope
            Scope of the entities.
        mentions
            The names of a batch.
        bulk
            Without a judge, embed only names that vectors can match now; `index_some` embeds the others.

        Returns
        -------
        None if there is nothing to compare or a step failed; the names then become new entities.
        """
        try:
            state = self._backend.index_state(scope)
            if state.model not in (None, self._embedder.model_name):
                return None  # vectors of different models aren't comparable; reindex replaces them
            bulk = bulk and self._ask is None
            if not bulk:
                self._index_missing(scope, _WAITING_AT_ONCE, state.generation)
            new = self._unknown(scope, mentions)
            if not new:
                return None
            embedded = self._to_compare(scope, new) if bulk else new
            texts = [_text(mention.display, mention.summary) for mention in embedded.values()]
            vectors = self._embedder.vectors(texts)
            prepared = Prepared(scope, self._embedder.model_name, dict(zip(embedded, vectors, strict=True)))
            prepared.deferred = {key: mention for key, mention in new.items() if key not in embedded}
            if prepared.deferred:
                self._complete.pop(scope, None)
            if self._ask is not None and self._resolves:
                self._judge(prepared, new)
        except BackendUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - the write continues whatever a model raises
            _log.warning("scope %s: new names not compared with known entities: %s", scope, error)
            return None
        return prepared

    def matcher(self, prepared: Prepared, known: Sequence[tuple[str, Entity]]) -> EntityMatcher:
        """Return the matcher for the names of a batch that are still unknown. Call it inside the transaction.

        Parameters
        ----------
        prepared
            The result of `prepare`.
        known
            (name, entity) of the names known at this point.

        Raises
        ------
        Outdated
            If a name without a vector has to be compared with an entity stored in the meantime.
        """
        built = self._backend.index_state(prepared.scope).model
        if built not in (None, prepared.model):
            return _NoMatcher()
        found = {(name, entity.entity_type) for name, entity in known}
        deferred = {key: mention for key, mention in prepared.deferred.items() if key not in found}
        if self._alike(prepared.scope, deferred)[0]:
            raise Outdated
        open_keys = [key for key in prepared.vectors if key not in found] if self._resolves else []
        asked = [(kind, prepared.vectors[name, kind]) for name, kind in open_keys]
        hits = self.vectors.nearest(prepared.scope, asked, self._ask_at)
        # the judge's entities may be far away by their vectors
        scores = [
            {**dict.fromkeys(prepared.judged.get(key, ()), 0.0), **{i: score for score, i in best}}
            for key, best in zip(open_keys, hits, strict=True)
        ]
        entities = self._entities(prepared.scope, [[(score, i) for i, score in scored.items()] for scored in scores])
        near = {
            key: [
                (score, entities[i])
                for i, score in scored.items()
                if i in entities and entities[i].entity_type == key[1]
            ]
            for key, scored in zip(open_keys, scores, strict=True)
        }
        return _Compared(prepared, near, self._merge_at if self._resolves else math.inf, self._ask_at)

    def index_some(self, scope: Scope, limit: int) -> bool:
        """Compute up to `limit` missing vectors, as those that bulk loads deferred; return whether none are left.

        Raises
        ------
        EmbeddingFailed
            If the model fails.
        """
        state = self._backend.index_state(scope)
        is_comparable = state.model in (None, self._embedder.model_name)
        return not (is_comparable and self._index_missing(scope, limit, state.generation))

    def index_waiting(self, scope: Scope, seconds: float) -> None:
        """Compute missing vectors before a search, for at most the given seconds."""
        deadline = time.monotonic() + seconds
        state = self._backend.index_state(scope)
        if state.model not in (None, self._embedder.model_name):
            return
        with suppress(StoreReadOnly):
            while self._index_missing(scope, _INDEXED_AT_ONCE, state.generation) and time.monotonic() < deadline:
                pass

    def _to_compare(self, scope: Scope, new: dict[Key, EntityMention]) -> dict[Key, EntityMention]:
        """Return the names that vectors may match: those that share their words with another name."""
        owners: dict[Key, list[Key]] = {}
        for key, mention in new.items():
            for spelling in spellings(mention.display, key[1]):
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
        return {key: mention for key, mention in new.items() if key in alike}

    def _alike(self, scope: Scope, new: Mapping[Key, EntityMention]) -> tuple[set[Key], list[str]]:
        """Return the names that share words with a known entity, and the ids of such entities without a vector."""
        if not new:
            return set(), []
        names = {(mention.display, key[1]): key for key, mention in new.items()}
        found, waiting = self.vectors.spelled_alike(scope, names, self._embedder.dimension)
        return {names[name] for name in found}, waiting

    def _unknown(self, scope: Scope, mentions: Sequence[EntityMention]) -> dict[Key, EntityMention]:
        """Return the mentions whose name is unknown for their type; of duplicates, one with a summary is preferred."""
        names = list(dict.fromkeys(mention.canonical for mention in mentions))
        known: dict[str, set[str]] = {}
        for name, entity in self._backend.resolve_names(scope, names):
            known.setdefault(name, set()).add(entity.entity_type)
        new: dict[Key, EntityMention] = {}
        for mention in mentions:
            types = known.get(mention.canonical, set())
            kind = mention.entity_type or mention.usual_type or "concept"
            if (mention.entity_type is None and types) or kind in types:
                continue
            key = (mention.canonical, kind)
            if key not in new or (mention.summary and not new[key].summary):
                new[key] = mention
        return new

    def _entities(self, scope: Scope, hits: Sequence[Sequence[tuple[float, str]]]) -> dict[str, Entity]:
        ids = list(dict.fromkeys(i for best in hits for _, i in best))
        return self._backend.get_entities([scope], ids) if ids else {}

    def _judge(self, prepared: Prepared, new: dict[Key, EntityMention]) -> None:
        """Ask the judge in one call about all new names that vectors or words make doubtful."""
        assert self._ask is not None
        doubts = self._doubts(prepared, new)
        known = list({entity.id: entity for near in doubts.values() for entity in near}.values())
        if not known:
            return
        asked = [_described(new[key]) for key in doubts]
        try:
            pairs = self._ask(asked, [_text(e.name, e.summary) for e in known])
        except Exception as error:  # noqa: BLE001 - the write continues whatever the judge's library raises
            _log.warning("judge failed, new names are not compared with known entities: %s", error)
            return
        keys = list(doubts)
        for position, other in pairs:
            if 0 <= position < len(keys) and 0 <= other < len(known) and known[other] in doubts[keys[position]]:
                prepared.judged.setdefault(keys[position], set()).add(known[other].id)

    def _doubts(self, prepared: Prepared, new: dict[Key, EntityMention]) -> dict[Key, list[Entity]]:
        """Return the known entities that new names may stand for: near by vector, or a longer or shorter form."""
        hits = self.vectors.nearest(
            prepared.scope, [(kind, vector) for (_, kind), vector in prepared.vectors.items()], self._ask_at
        )
        entities = self._entities(prepared.scope, hits)
        forms = self._other_forms(prepared.scope, new)
        doubts: dict[Key, list[Entity]] = {}
        for (key, mention), best in zip(new.items(), hits, strict=True):
            near = [(score, entities[i]) for score, i in best if i in entities]
            if len(doubts) == self._most_questions or _sure(mention, near, self._merge_at) is not None:
                continue
            found = {e.id: e for e in (*(e for _, e in near), *forms.get(key, ()))}
            doubtful = [e for e in found.values() if not numbers_differ(mention.display, e.name, e.entity_type)]
            if doubtful:
                doubts[key] = doubtful
        return doubts

    def _other_forms(self, scope: Scope, new: Mapping[Key, EntityMention]) -> dict[Key, list[Entity]]:
        """Return the known entities of the same type whose name is a short or a full form of a new name."""
        words = {word for mention in new.values() for word in split_words(mention.display)}
        words |= {form for word in words for form in short_forms(word)}
        initials = {"".join(word[0] for word in split_words(mention.display)) for mention in new.values()}
        hits = self._backend.search_entities(
            [scope], words=sorted(words)[:_FORM_WORDS], phrases=sorted(initials), limit=_FORMS
        )
        known = {hit.entity.id: hit.entity for hit in hits}
        short = {kind for (_, kind), mention in new.items() if len(mention.display) <= _LONGEST_INITIALS}
        if short:  # no search finds Alex Chen by AC
            query = EntityQuery(entity_types=tuple(sorted(short)))
            known.update((e.id, e) for e in self._backend.find_entities([scope], query, limit=_LISTED))
        return {
            key: [e for e in known.values() if e.entity_type == key[1] and may_be_same(mention.display, e.name, key[1])]
            for key, mention in new.items()
        }

    def _index_missing(self, scope: Scope, limit: int, generation: int) -> bool:
        """Compute vectors of known entities without one: from a bulk load, or written by a process without a model.

        Returns whether there were any. A scan that finds none counts for a while.
        """
        complete, next_scan = self._complete.get(scope, (None, 0.0))
        begun = time.monotonic()
        if complete == generation and begun < next_scan:
            return False
        waiting = self._unindexed.find(scope, "entity", limit=limit)
        if not waiting:
            ended = time.monotonic()
            self._complete[scope] = generation, ended + max(_SCAN_INTERVAL, _SCAN_SHARE * (ended - begun))
            return False
        self._index(scope, waiting)
        self._unindexed.advance(scope, "entity", waiting, limit)
        return True

    def _index(self, scope: Scope, ids: Sequence[str]) -> None:
        """Compute and store the vectors of known entities."""
        since = self._backend.erasure_token(scope)
        found = list(self._backend.get_entities([scope], ids).values())
        vectors = self._embedder.vectors([_text(e.name, e.summary) for e in found])
        model = self._embedder.model_name
        entries = [entity_entry(e.id, e.entity_type, model, v) for e, v in zip(found, vectors, strict=True)]
        self._backend.write_unless_erased(scope, Changes(index=tuple(entries)), since=since)


class _NoMatcher:
    """Matcher that matches no name."""

    def find(self, mention: EntityMention, kind: str) -> None:
        """Return None."""

    def keep(self, entity: Entity) -> None:
        """Ignore the entity."""

    entries: tuple[IndexEntry, ...] = ()


class _Compared:
    """Matcher of the names of a batch with the nearest known entities and the new entities of the batch."""

    def __init__(
        self, prepared: Prepared, near: dict[Key, list[tuple[float, Entity]]], merge_at: float, ask_at: float
    ) -> None:
        self._prepared = prepared
        self._near = near
        self._merge_at = merge_at
        self._likely_at = min(merge_at, ask_at) if merge_at < math.inf else merge_at
        self._new: dict[str, tuple[list[Entity], GrowingArray[np.float32]]] = {}
        self._entries: list[IndexEntry] = []

    @property
    def entries(self) -> tuple[IndexEntry, ...]:
        """Index entries of the new entities."""
        return tuple(self._entries)

    @one_blas_thread
    def find(self, mention: EntityMention, kind: str) -> tuple[Entity, MergeMethod, float] | None:
        """Return the entity that matches a new name, the method of the match, and the cosine; None without a match."""
        key = (mention.canonical, kind)
        vector = self._prepared.vectors.get(key)
        if vector is None:
            return None
        near = list(self._near.get(key, ()))
        if kind in self._new:
            entities, rows = self._new[kind]
            scores = rows.rows @ vector
            likely = np.flatnonzero(scores >= self._likely_at).tolist()
            near += [(min(1.0, float(scores[i])), entities[i]) for i in likely]
        near.sort(key=lambda hit: (-hit[0], hit[1].id))
        if (sure := _sure(mention, near, self._merge_at)) is not None:
            return sure[1], "vectors", sure[0]
        judged = self._prepared.judged.get(key, ())
        same = next((hit for hit in near if hit[1].id in judged), None)
        return None if same is None else (same[1], "llm", same[0])

    def keep(self, entity: Entity) -> None:
        """Add a new entity, so that later names are compared with it as well."""
        vector = self._prepared.vectors.get((entity.canonical_name, entity.entity_type))
        if vector is not None:
            width = len(vector)
            entities, rows = self._new.setdefault(entity.entity_type, ([], GrowingArray(np.float32, width)))
            entities.append(entity)
            rows.extend(vector[None])
            self._entries.append(entity_entry(entity.id, entity.entity_type, self._prepared.model, vector))
        elif (entity.canonical_name, entity.entity_type) in self._prepared.deferred:
            self._entries.append(waiting_entry(entity.id, entity.entity_type))


def _sure(mention: EntityMention, near: Sequence[tuple[float, Entity]], merge_at: float) -> tuple[float, Entity] | None:
    """Return the nearest entity that vectors alone may match: near enough, or another spelling of the same name."""
    return next(
        (
            (score, entity)
            for score, entity in near
            if (score >= merge_at or is_same_spelling(mention.display, entity.name, entity.entity_type))
            and obstacle(mention.display, entity.name, entity.entity_type) is None
        ),
        None,
    )


def _described(mention: EntityMention) -> str:
    """Return a new name with its summary and the text that has it."""
    said = f" — in the text: {mention.text}" if mention.text else ""
    return _text(mention.display, mention.summary) + said


def _text(name: str, summary: str) -> str:
    return f"{name}: {summary}" if summary else name
