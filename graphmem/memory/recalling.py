"""Answers to questions: facts, episodes, and text for a prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from graphmem.communities.results import FoundCommunity
from graphmem.errors import InvalidInput, NotFound
from graphmem.inputs import to_as_of, to_limit
from graphmem.memory.part import Part, Scopes, Time
from graphmem.models import AsOf, EdgeType, RecallQuery, Scope, utc_now
from graphmem.recall.options import RecallOptions
from graphmem.recall.recall import recall
from graphmem.recall.routing import HeuristicRouter, narrowed
from graphmem.recall.traces import Observer, explain
from graphmem.results import RecallResult, StrategyChoice, Trace
from graphmem.search.context import estimate_tokens, render_context, worth_quoting
from graphmem.search.results import ExpansionConfig, Fusion, SearchOptions, SearchResults
from graphmem.search.service import CONSIDERED, search_trace

_MOST_QUOTES = 25  # episodes in a context
_MOST_COMMUNITIES = 20


class Recalling(Part):
    """What answers questions."""

    def recall(
        self,
        query: str,
        *,
        limit: int | None = None,
        edge_types: Iterable[EdgeType | str] = (),
        as_of: AsOf | Time | None = None,
        max_hops: int | None = None,
        temporal_decay_rate: float | None = None,
        strategy: StrategyChoice | None = None,
        trace: bool = False,
        scopes: Scopes | None = None,
    ) -> RecallResult:
        """Return facts for a question, best first, each with its seed, path, hop and the parts of its score.

        Parameters
        ----------
        query
            A question in plain words; at most 512 characters of it are read.
        limit
            Facts at most.
        edge_types
            Types to follow; none means all.
        as_of
            The moment that is asked about: an `AsOf`, or the time at which the facts held.
        max_hops
            Hops from the entities that the question names.
        temporal_decay_rate
            In [0, 10]; above 0, newer facts gain.
        strategy
            How the graph is walked: bfs (nearest first), spreading, ppr, astar, or auto: by the kind of question.
        trace
            Whether to store a trace, which `why` explains later; written in the background.
        scopes
            Scopes, or their texts, to read instead of the memory's own. A trace belongs to one scope: with several,
            `trace` is refused.
        """
        options = RecallOptions.of(
            self._engine.settings,
            limit=limit,
            strategy=strategy,
            max_hops=max_hops,
            temporal_decay_rate=temporal_decay_rate,
            edge_types=tuple(self._engine.ontology.require_edge_type(kind) for kind in edge_types),
            as_of=to_as_of(as_of),
        )
        where = self._scopes(scopes)
        scope = self._traced(where) if trace else None
        query = self._engine.redacted(query)
        now, observer = utc_now(), Observer() if trace else None
        result = recall(
            self._engine.backend,
            where,
            query,
            options,
            self._engine.ontology,
            now,
            meaning=self._engine.meaning,
            observer=observer,
        )
        self._engine.recorder.count(where, [fact.id for fact in result.facts])
        if observer is None or scope is None:
            return result
        kept = observer.trace(scope, result, now)
        self._engine.recorder.keep(kept)
        return result.changed(trace_id=kept.id)

    def why(self, trace_id: str, *, scopes: Scopes | None = None) -> Trace:
        """Tell why a recall returned what it did: its seeds, and each fact that it came upon with score and hop.

        Parameters
        ----------
        trace_id
            `RecallResult.trace_id` of a recall with ``trace=True``, of this process or another.
        scopes
            As in `recall`.

        Raises
        ------
        NotFound
            If there is no such trace in the scopes.
        """
        found = self._traces(self._scopes(scopes), RecallQuery(ids=(trace_id,)), 1)
        if not found:
            raise NotFound(f"recall trace {trace_id} is not in scope {self.scope}")
        return found[0]

    def recalls(
        self,
        name: str | None = None,
        *,
        fact_id: str | None = None,
        limit: int = 20,
        scopes: Scopes | None = None,
    ) -> list[Trace]:
        """Return traces of recalls, newest first.

        Parameters
        ----------
        name
            Only those that started from this entity, or found a fact at it; one of its names.
        fact_id
            Only those that came upon this fact, returned or not.
        limit
            Traces at most.
        scopes
            As in `recall`.
        """
        where = self._scopes(scopes)
        query = RecallQuery(
            entity_ids=None if name is None else self._ids(where, name),
            edge_ids=None if fact_id is None else (fact_id,),
        )
        return self._traces(where, query, to_limit(limit))

    def search(
        self,
        query: str,
        *,
        k: int | None = None,
        as_of: AsOf | Time | None = None,
        expansion: ExpansionConfig | None = None,
        fusion: Fusion = "weighted",
        diversity: float = 0.0,
        trace: bool = False,
        scopes: Scopes | None = None,
    ) -> SearchResults:
        """Return the episodes that answer a question, best first, each with the reasons why.

        Parameters
        ----------
        query
            A question in plain words; at most 512 characters of it are read.
        k
            Episodes at most.
        as_of
            Only what had occurred and was recorded by then.
        expansion
            Whether and how names lead further; by default by personalised PageRank.
        fusion
            How the channels are made one: "weighted" (the measured default), or "rrf" (reciprocal ranks).
        diversity
            In [0, 1): above 0, episodes unlike those before them gain (MMR).
        trace, scopes
            As in `recall`.

        Raises
        ------
        IndexMismatch
            If the memory was indexed with another embedding model.
        """
        settings = self._engine.settings
        k = to_limit(settings.search_limit if k is None else k)
        options = SearchOptions(
            k=k,
            considered=CONSIDERED if trace else 0,
            as_of=to_as_of(as_of),
            expansion=expansion or ExpansionConfig(),
            expansion_boost=settings.expansion_boost,
            fusion=fusion,
            diversity=diversity,
            wait=settings.index_wait,
        )
        where, now = self._scopes(scopes), utc_now()
        scope = self._traced(where) if trace else None
        found = self._engine.rag.search(where, query, options)
        if scope is None:
            return found
        kept = search_trace(self._engine.backend, scope, found, k, now)
        self._engine.recorder.keep(kept)
        return found.changed(found=found.found[:k], trace_id=kept.id)

    def context(
        self,
        query: str,
        *,
        budget_tokens: int | None = None,
        count_tokens: Callable[[str], int] = estimate_tokens,
        as_of: AsOf | Time | None = None,
        flagged: bool = False,
        scopes: Scopes | None = None,
    ) -> str:
        """Return facts and dated quotes for a question, for a prompt; empty if there is nothing, or nothing fits.

        A question about everything ("What are the main topics?") is answered by communities, which stand first.

        Parameters
        ----------
        query, as_of, scopes
            As in `recall` and `search`.
        budget_tokens
            Tokens at most; defaults to 4 % of the context window (settings `context_share`, `context_window`).
        count_tokens
            How the model counts tokens; the default estimates them.
        flagged
            Whether to quote texts that are flagged as prompt injections.
        """
        settings = self._engine.settings
        if budget_tokens is None:
            budget_tokens = int(settings.context_window * settings.context_share)
        limit = max(settings.recall_limit, min(200, budget_tokens // 12))
        known = self.recall(query, limit=limit, as_of=as_of, scopes=scopes)
        k = max(settings.search_limit, min(_MOST_QUOTES, budget_tokens // 40))
        said = worth_quoting(self.search(query, k=k, as_of=as_of, scopes=scopes).found, flagged=flagged)
        about = self._overview(query, as_of, scopes)
        return render_context(known.facts, budget_tokens, count_tokens, episodes=said, communities=about)

    def _overview(self, query: str, as_of: AsOf | Time | None, scopes: Scopes | None) -> list[FoundCommunity]:
        """Return the communities that answer a question about everything; none for another question."""
        if HeuristicRouter().route(query, now=utc_now()).kind != "global":
            return []
        where, moment = self._scopes(scopes), to_as_of(as_of)
        narrow = narrowed(query)
        options: dict[str, Any] = {"level": 0, "as_of": moment, "ended": False, "limit": _MOST_COMMUNITIES}
        found = self._engine.communities.find(where, narrow, **options) if narrow else []
        return found or self._engine.communities.find(where, None, **options)

    def _traced(self, scopes: Sequence[Scope]) -> Scope:
        """Return the one scope that a trace belongs to."""
        scope, *others = scopes
        if others:
            raise InvalidInput(f"trace: a traced recall reads one scope, got {len(scopes)}")
        return scope

    def _traces(self, scopes: Sequence[Scope], query: RecallQuery, limit: int) -> list[Trace]:
        self._engine.recorder.write_if_room()  # what was just recalled can be asked about at once
        found = self._engine.backend.find_recalls(scopes, query, limit=limit, newest_first=True)
        return explain(self._engine.backend, scopes, found)
