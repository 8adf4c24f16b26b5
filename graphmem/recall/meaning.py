"""Vectors that a recall may use: of the question and of entities; without them, and when they fail, it goes on."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from graphmem.models import Scope
from graphmem.recall.walk import Floats

_log = logging.getLogger(__name__)

Vectors = NDArray[np.floating]


class Meaning(Protocol):
    """Where a recall gets vectors from."""

    def of_query(self, query: str) -> Vectors:
        """Return the vector of a question, shape (d,)."""
        ...

    def of_entities(self, scopes: Sequence[Scope], entity_ids: Sequence[str]) -> Vectors:
        """Return the vectors of n entities, shape (n, d); a row of 0 where there is none."""
        ...


def entity_vectors(meaning: Meaning | None, scopes: Sequence[Scope], entity_ids: Sequence[str]) -> Floats | None:
    """Return unit vectors of n entities, shape (n, d), all 0 where there is none; None where there are none at all."""
    if meaning is None:
        return None
    try:
        return _unit(meaning.of_entities(scopes, entity_ids), rows=len(entity_ids))
    except Exception as error:  # noqa: BLE001 - whatever a model or an index raises, the recall goes on without
        _log.debug("no vectors of entities: %s: %s", type(error).__name__, error)
        return None


def query_cosines(
    meaning: Meaning | None, scopes: Sequence[Scope], query: str, entity_ids: Sequence[str], *, time_limit: float
) -> Floats | None:
    """Return the cosine of a question and each of n entities, shape (n,); None where they can't be had in time.

    The question is embedded once. An entity without a vector has NaN.

    Parameters
    ----------
    time_limit
        Seconds that embedding the question may take; a call that takes longer is left behind on its thread.
    """
    if meaning is None or (vectors := entity_vectors(meaning, scopes, entity_ids)) is None:
        return None
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
    try:
        if failure:
            raise failure[0]
        if not answer:
            raise TimeoutError(f"no answer within {time_limit} s")
        [question] = _unit(np.atleast_2d(answer[0]), rows=1)
        return np.where(np.any(vectors != 0.0, axis=1), vectors @ question, math.nan)
    except Exception as error:  # noqa: BLE001 - as above
        _log.debug("no vector of the question: %s: %s", type(error).__name__, error)
        return None


def _unit(vectors: Vectors, *, rows: int) -> Floats:
    found = np.asarray(vectors, dtype=np.float64)
    if found.ndim != 2 or len(found) != rows or not np.all(np.isfinite(found)):
        raise ValueError(f"{rows} rows of finite numbers were expected, got shape {found.shape}")
    length = np.linalg.norm(found, axis=1, keepdims=True)
    return found / np.where(length == 0.0, 1.0, length)
