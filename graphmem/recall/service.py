"""Recall over a store, with retrieval counts and traces (spec: recall)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphmem.errors import InvalidInput
from graphmem.models import RecallQuery, Scope, utc_now
from graphmem.ontology import Ontology
from graphmem.protocols import GraphBackend
from graphmem.recall.embeddings import EntityEmbeddings
from graphmem.recall.options import RecallOptions
from graphmem.recall.recall import recall
from graphmem.recall.traces import Observer, RecallRecorder, explain
from graphmem.results import RecallResult, Trace


def require_one_scope(scopes: Sequence[Scope]) -> Scope:
    """Return the scope of a trace; raise `InvalidInput` for several."""
    if len(scopes) != 1:
        raise InvalidInput(f"trace: a traced recall reads one scope, got {len(scopes)}")
    return scopes[0]


class RecallService:
    """Recall over the facts of a store.

    Parameters
    ----------
    backend, ontology
        The store and its ontology.
    recorder
        Writer of retrieval counts and traces.
    meaning
        Vectors to find entities by; None finds them by words only.
    redact
        Redacts a question before it is processed.
    """

    def __init__(
        self,
        backend: GraphBackend,
        ontology: Ontology,
        recorder: RecallRecorder,
        meaning: EntityEmbeddings | None,
        redact: Callable[[str], str],
    ) -> None:
        self._backend = backend
        self._ontology = ontology
        self._recorder = recorder
        self._meaning = meaning
        self._redact = redact

    def recall(
        self, scopes: tuple[Scope, ...], query: str, options: RecallOptions, *, trace: bool = False
    ) -> RecallResult:
        """Return facts for a question, best first; count them as retrieved, and store a trace if asked for."""
        scope = require_one_scope(scopes) if trace else None
        now, observer = utc_now(), Observer() if trace else None
        result = recall(
            self._backend,
            scopes,
            self._redact(query),
            options,
            self._ontology,
            now,
            meaning=self._meaning,
            observer=observer,
        )
        self._recorder.count(scopes, [fact.id for fact in result.facts])
        if observer is None or scope is None:
            return result
        kept = observer.trace(scope, result, now)
        self._recorder.keep(kept)
        return result.changed(trace_id=kept.id)

    def traces(self, scopes: Sequence[Scope], query: RecallQuery, limit: int) -> list[Trace]:
        """Return stored traces, newest first, including those of this process that were still to be written."""
        self._recorder.write_if_room()
        found = self._backend.find_recalls(scopes, query, limit=limit, newest_first=True)
        return explain(self._backend, scopes, found)
