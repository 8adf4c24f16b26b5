"""Note linking (A-MEM, arXiv 2502.12110): `similar_to` facts between a new entity and its nearest neighbors."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from graphmem.errors import BackendUnavailable
from graphmem.index.entity_vectors import EntityVectors
from graphmem.index.stored_vectors import unpacked
from graphmem.inference.premises import write_facts
from graphmem.models import Changes, Edge, EdgeQuery, EdgeType, Entity, Scope, utc_now
from graphmem.ontology import SIMILAR_TO
from graphmem.protocols import GraphBackend
from graphmem.text.normalize import plain_fact

_log = logging.getLogger(__name__)

_MOST_LINKS = 10  # of an entity
_LEAST_COSINE = 0.85
_LINK_SECONDS = 5.0
_LINKED_AT_ONCE = 100


class NoteLinks:
    """Linker of new entities to at most ten known ones of their type with a cosine of 0.85 or more.

    Parameters
    ----------
    backend
        The store.
    vectors
        Vectors of its entities.
    seconds
        Time limit per batch; the rest of the batch stays without links.
    """

    def __init__(self, backend: GraphBackend, vectors: EntityVectors, *, seconds: float = _LINK_SECONDS) -> None:
        self._backend = backend
        self._vectors = vectors
        self._seconds = seconds

    def link(self, scope: Scope, entity_ids: Sequence[str]) -> int:
        """Link the new entities of a write; return the number of facts created. Failures are logged."""
        deadline = time.monotonic() + self._seconds
        made = 0
        try:
            for start in range(0, len(entity_ids), _LINKED_AT_ONCE):
                if time.monotonic() >= deadline:
                    _log.warning(
                        "scope %s: time limit reached, %d new entities are not linked", scope, len(entity_ids) - start
                    )
                    break
                made += self._link(scope, entity_ids[start : start + _LINKED_AT_ONCE])
        except BackendUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - links are optional: the write is already committed
            _log.warning("scope %s: new entities are not linked: %s", scope, error)
        return made

    def _link(self, scope: Scope, entity_ids: Sequence[str]) -> int:
        found = self._backend.get_entities([scope], entity_ids)
        vectors = {
            entry.key: unpacked(entry, len(entry.vectors) // 2)[0]
            for entry in self._backend.find_index(scope, "entity", entity_ids)
            if entry.vectors
        }
        new = [found[i] for i in entity_ids if i in found and i in vectors]
        questions = [(entity.entity_type, vectors[entity.id]) for entity in new]
        hits = self._vectors.nearest(scope, questions, _LEAST_COSINE, limit=_MOST_LINKS + 1)
        pairs: dict[tuple[str, str], float] = {}
        for entity, near in zip(new, hits, strict=True):
            for score, other in [hit for hit in near if hit[1] != entity.id][:_MOST_LINKS]:
                if (other, entity.id) not in pairs:
                    pairs[entity.id, other] = score
        return self._backend.atomic(lambda: self._write(scope, pairs)) if pairs else 0

    def _write(self, scope: Scope, pairs: dict[tuple[str, str], float]) -> int:
        entities = self._backend.get_entities([scope], list({i for pair in pairs for i in pair}))
        keys = tuple((a, b, SIMILAR_TO, EdgeType.SEMANTIC) for pair in pairs for a, b in (pair, pair[::-1]))
        known = {(e.source_id, e.target_id) for e in self._backend.all_edges([scope], EdgeQuery(keys=keys))}
        edges = tuple(
            _edge(scope, entities[a], entities[b], score)
            for (a, b), score in pairs.items()
            if a in entities and b in entities and (a, b) not in known and (b, a) not in known
        )
        write_facts(self._backend, scope, Changes(edges=edges))
        return len(edges)


def _edge(scope: Scope, one: Entity, other: Entity, score: float) -> Edge:
    return Edge(
        scope=scope,
        source_id=one.id,
        target_id=other.id,
        relation=SIMILAR_TO,
        fact=plain_fact(one.name, SIMILAR_TO, other.name),
        confidence=max(0.0, min(1.0, score)),
        valid_from=max(one.first_seen_at, other.first_seen_at),
        recorded_at=utc_now(),
    )
