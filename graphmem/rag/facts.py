"""Facts as units of recall: the question against their sentences, by vector and by words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphmem.models import IndexEntry
from graphmem.rag.growing import Growing
from graphmem.rag.lexical import Lexicon
from graphmem.rag.reading import text_of, unpacked
from graphmem.rag.sessions import Sessions
from graphmem.rag.walk import normalised
from graphmem.text.words import terms

_VECTOR_SHARE = 0.6
_BEST = 100


class FactIndex:
    """The sentences of facts; grows, never shrinks. Which of them still hold is the store's to say."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._ids: list[str] = []
        self._known: set[str] = set()
        self._sessions = Sessions()
        self._lexicon = Lexicon(self._sessions)
        self._vectors: Growing[np.float32] = Growing(np.float32, dimension)

    def __len__(self) -> int:
        return len(self._ids)

    def extend(self, entries: Sequence[IndexEntry]) -> None:
        """Add the entries of facts; those that are known stay as they are: the sentence of a fact never changes."""
        new = [entry for entry in entries if entry.key not in self._known]
        if not new:
            return
        self._ids += [entry.key for entry in new]
        self._known.update(entry.key for entry in new)
        self._sessions.extend([(entry.key, None) for entry in new])
        self._lexicon.extend([(terms(text_of(entry)), ()) for entry in new])
        if self._dimension:
            self._vectors.extend(np.concatenate([self._vector(entry) for entry in new]))

    def _vector(self, entry: IndexEntry) -> NDArray[np.float32]:
        if not entry.vectors:
            return np.zeros((1, self._dimension), np.float32)
        return unpacked(entry, self._dimension)

    def best(self, question_terms: Sequence[str], vector: NDArray[np.float32] | None) -> dict[str, float]:
        """Return the edge ids of the facts that fit a question best → score in [0, 1]."""
        if not self._ids:
            return {}
        score = normalised(self._lexicon.scores(question_terms))
        if vector is not None and self._dimension:
            score = _VECTOR_SHARE * normalised(self._vectors.rows @ vector) + (1 - _VECTOR_SHARE) * score
        top = np.argsort(-score, kind="stable")[:_BEST]
        return {self._ids[i]: float(score[i]) for i in top.tolist() if score[i] > 0}
