"""Optional vectors of questions and entities for recall; on failure recall continues without them."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from graphmem.models import Scope
from graphmem.recall.scoring import Floats
from graphmem.text import counted

_log = logging.getLogger(__name__)

LEAST_COSINE = 0.35
"""Minimum cosine of an entity that is considered related to a question."""

_EMBEDDING_TIME = 10.0  # seconds

Vectors = NDArray[np.floating]


class EntityEmbeddings(Protocol):
    """Source of vectors for recall."""

    def of_query(self, query: str) -> Vectors:
        """Return the vector of a question, shape (d,)."""
        ...

    def of_entities(self, scopes: Sequence[Scope], entity_ids: Sequence[str]) -> Vectors:
        """Return the vectors of n entities, shape (n, d); a zero row for an entity without one."""
        ...

    def nearest(self, scopes: Sequence[Scope], question: Vectors, limit: int) -> Sequence[tuple[str, float]]:
        """Return (entity id, cosine) of the entities nearest to a vector of shape (d,), best first."""
        ...


def entity_vectors(
    meaning: EntityEmbeddings | None, scopes: Sequence[Scope], entity_ids: Sequence[str]
) -> Floats | None:
    """Return unit vectors of n entities, shape (n, d), zero rows for missing ones; None if unavailable."""
    if meaning is None:
        return None
    try:
        return _unit(meaning.of_entities(scopes, entity_ids), rows=len(entity_ids))
    except Exception as error:  # noqa: BLE001 - a model or an index may raise anything; recall continues without
        _log.debug("no vectors of entities: %s: %s", type(error).__name__, error)
        return None


def query_cosines(
    meaning: EntityEmbeddings | None,
    scopes: Sequence[Scope],
    query: str,
    entity_ids: Sequence[str],
    *,
    time_limit: float = _EMBEDDING_TIME,
) -> Floats | None:
    """Return the cosine of a question and each of n entities, shape (n,); None on failure or timeout.

    The question is embedded once. The value of an entity without a vector is NaN.

    Parameters
    ----------
    time_limit
        Seconds that embedding the question may take; a slower call is abandoned on its thread.
    """
    if meaning is None or (vectors := entity_vectors(meaning, scopes, entity_ids)) is None:
        return None
    try:
        [question] = _unit(np.atleast_2d(_query_vector(meaning, query, time_limit)), rows=1)
        return np.where(np.any(vectors != 0.0, axis=1), vectors @ question, math.nan)
    except Exception as error:  # noqa: BLE001 - as above
        _log.debug("no vector of the question: %s: %s", type(error).__name__, error)
        return None


def nearest_entities(
    meaning: EntityEmbeddings, scopes: Sequence[Scope], query: str, limit: int, *, time_limit: float = _EMBEDDING_TIME
) -> list[tuple[str, float]]:
    """Return (entity id, cosine) of the entities with the most similar vectors to a question; empty on failure."""
    try:
        found = meaning.nearest(scopes, _query_vector(meaning, query, time_limit), limit)
        return [(entity_id, cosine) for entity_id, cosine in found if cosine >= LEAST_COSINE]
    except Exception as error:  # noqa: BLE001 - as above
        _log.debug("no entities by vectors: %s: %s", type(error).__name__, error)
        return []


def _query_vector(meaning: EntityEmbeddings, query: str, time_limit: float) -> Vectors:
    """Return the vector of a question; raise `TimeoutError` after `time_limit`, abandoning the call on its thread."""
    answer: list[Vectors] = []
    failure: list[Exception] = []

    def ask() -> None:
        try:
            answer.append(meaning.of_query(query))
        except Exception as error:  # noqa: BLE001 - reported by the caller's thread
            failure.append(error)

    worker = threading.Thread(target=ask, name="graphmem-question", daemon=True)
    worker.start()
    worker.join(time_limit)
    if failure:
        raise failure[0]
    if not answer:
        raise TimeoutError(f"no answer within {time_limit} s")
    return answer[0]


def _unit(vectors: Vectors, *, rows: int) -> Floats:
    found = np.asarray(vectors, dtype=np.float64)
    if found.ndim != 2 or len(found) != rows or not np.all(np.isfinite(found)):
        raise ValueError(f"{counted(rows, 'row')} of finite numbers were expected, got shape {found.shape}")
    length = np.linalg.norm(found, axis=1, keepdims=True)
    return found / np.where(length == 0.0, 1.0, length)
