"""Recall over a store, with retrieval counts and traces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from graphmem.errors import InvalidInput
from graphmem.models import RecallQuery, Scope, utc_now
from graphmem.ontology import Ontology
from graphmem.process import one_blas_thread
from graphmem.protocols import GraphBackend
from graphmem.recall.entity_embeddings import EntityEmbeddings
from graphmem.recall.evidence import Evidence, FindEvidence
from graphmem.recall.facts import live
from graphmem.recall.options import RecallOptions
from graphmem.recall.periods import joined, options_then, period_of, until_begin_of, without_dates
from graphmem.recall.recall import RecallContext, recall
from graphmem.recall.traces import Observer, RecallRecorder, explain
from graphmem.results import RecallResult, Trace
from graphmem.telemetry import count, question_attributes, span
from graphmem.text.normalize import is_punctuation


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
    embeddings
        Vectors to find entities by; None finds them by words only.
    redact
        Redacts a question before it is processed.
    find_evidence
        Searches the episodes whose facts are added; None walks the graph alone.
    clock
        Returns the present.
    show_text
        Whether spans show questions and scopes.
    """

    def __init__(
        self,
        backend: GraphBackend,
        ontology: Ontology,
        recorder: RecallRecorder,
        embeddings: EntityEmbeddings | None,
        redact: Callable[[str], str],
        find_evidence: FindEvidence | None = None,
        clock: Callable[[], datetime] = utc_now,
        *,
        show_text: bool = False,
    ) -> None:
        self._backend = backend
        self._ontology = ontology
        self._recorder = recorder
        self._embeddings = embeddings
        self._redact = redact
        self._find_evidence = find_evidence
        self._clock = clock
        self._show_text = show_text

    def recall(
        self,
        scopes: tuple[Scope, ...],
        query: str,
        options: RecallOptions,
        *,
        trace: bool = False,
        evidence: Evidence | None = None,
    ) -> RecallResult:
        """Return facts for a question, best first; count them as retrieved, and store a trace if asked for.

        A question about a time of the past ("in 2020") is answered with what held then for a while, also if it was
        replaced since. If it is in doubt that it is about that time alone, what holds now is added, or comes first.

        Parameters
        ----------
        scopes, query, options
            The scopes to read, the question, and the options.
        trace
            Whether to store a trace; the recall then reads one scope.
        evidence
            What a search for the question has found; None searches here.
        """
        query = self._redact(query)
        if is_punctuation(query):
            options = options.changed(limit=0)  # also where the asker is known, whose facts would be found
        shown = question_attributes(query, scopes, show_text=self._show_text)
        with span("graphmem.recall", shown, duration="graph_recall_duration_ms") as one:
            found = self._recall(scopes, query, options, trace=trace, evidence=evidence)
            degraded = bool(found.degraded)
            one.set({"graphmem.facts": len(found), "graphmem.strategy": found.strategy, "graphmem.degraded": degraded})
        if degraded:
            count("graph_degraded_total", operation="recall")
        return found

    @one_blas_thread
    def _recall(
        self,
        scopes: tuple[Scope, ...],
        query: str,
        options: RecallOptions,
        *,
        trace: bool,
        evidence: Evidence | None,
    ) -> RecallResult:
        scope = require_one_scope(scopes) if trace else None
        now = self._clock()
        if evidence is None and options.episodes and self._find_evidence is not None:
            with span("graphmem.recall.evidence"):
                evidence = self._find_evidence(scopes, query, options)
        asker = None if evidence is None else evidence.asker
        asked = query if asker is None else f"{asker}: {query}"

        observer = Observer() if trace else None

        services = self._ontology, now, self._embeddings, observer, evidence or Evidence()
        ask = partial(recall, RecallContext(self._backend, scopes, *services))
        result = ask(asked, options).changed(query=query)
        period = period_of(asked, now) if options.as_of is None else None
        if period is not None:
            undated = without_dates(asked, now)
            then = ask(undated, options_then(options, period))
            if (earlier := until_begin_of(period, (*result.facts, *then.facts), asked)) is not None:
                # what came after has told the time; its words would prefer other facts about it
                period, then = earlier, ask(undated.replace(earlier.before, " "), options_then(options, earlier))
            result = joined(period, then, result, options.limit) if then.facts else result
        self._recorder.count(scopes, [fact.id for fact in result.facts])
        if observer is None or scope is None:
            return result
        kept = observer.trace(scope, result, now)
        self._recorder.keep(kept)
        return result.changed(trace_id=kept.id)

    def traces(self, scopes: Sequence[Scope], query: RecallQuery, limit: int) -> list[Trace]:
        """Return stored traces, newest first, including those of this process that were still to be written."""
        self._recorder.write_if_room()
        read = partial(self._backend.find_recalls, scopes, query, newest_first=True)
        now = self._clock()
        shown = live(lambda most: read(limit=most), lambda found: explain(self._backend, scopes, found, now), limit)
        return list(shown)
