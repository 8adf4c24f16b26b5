"""`GraphMemory`: what most users need of graphmem, in one object."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from graphmem.embed import Embeddings
from graphmem.engine import Engine
from graphmem.errors import InvalidInput, NotFound
from graphmem.ingest.load import OnProgress
from graphmem.inputs import ItemLike, TripleLike, to_as_of, to_item, to_limit, to_scope, to_time
from graphmem.models import (
    AsOf,
    EdgeQuery,
    EdgeType,
    Entity,
    EntityQuery,
    Episode,
    EpisodeQuery,
    Merge,
    MergeQuery,
    RecallQuery,
    Scope,
    utc_now,
)
from graphmem.models import one_or_many as _one_or_many
from graphmem.protocols import Explorer, Extractor, Redactor
from graphmem.rag.context import estimate_tokens, render_context, worth_quoting
from graphmem.rag.evaluate import KS, Evaluation, QuestionLike, evaluate
from graphmem.rag.found import SearchResults
from graphmem.rag.service import SearchOptions
from graphmem.recall.history import diff, history
from graphmem.recall.options import RecallOptions
from graphmem.recall.recall import find_seeds, recall, to_facts
from graphmem.recall.trace import Observer, explain
from graphmem.results import Check, Diff, Fact, LoadReport, RecallResult, Stats, StrategyChoice, Trace
from graphmem.settings import Settings
from graphmem.text.normalise import canonical
from graphmem.upkeep.merge import merge_entities
from graphmem.upkeep.unmerge import Unmerged, unmerge

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.language_models import BaseChatModel

_MOST_QUOTES = 25  # episodes in a context

Time = datetime | str
Scopes = Scope | Iterable[Scope]


@dataclass(frozen=True, slots=True)
class Receipt:
    """An episode is on disk. ``wait()`` or ``await`` it to have it extracted as well.

    Attributes
    ----------
    episode_id
        Its id, or that of the one with the same `external_id`.
    created
        False if the `external_id` was known: nothing was stored.
    """

    episode_id: str
    created: bool
    _memory: GraphMemory

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the episode is extracted or out of tries; return False if `timeout` seconds were not enough."""
        return self._memory.flush(timeout, episode_id=self.episode_id) == 0

    def __await__(self) -> Generator[Any, None, bool]:
        return asyncio.to_thread(self.wait).__await__()


class GraphMemory:
    """A memory: one scope of one store, with the work that goes on behind it.

    Open it with `open`. Every method is safe from any thread; those that begin with ``a`` are for async code
    and run the method of that name on a worker thread. Times are aware datetimes or ISO 8601 texts.
    """

    def __init__(self, engine: Engine, scope: Scope) -> None:
        self._engine = engine
        self.scope = scope

    @classmethod
    def open(
        cls,
        url: str | None = None,
        *,
        scope: Scope | str | None = None,
        extractor: Extractor | str | None = None,
        llm: BaseChatModel | str | None = None,
        redactor: Redactor | None = None,
        embeddings: Embeddings | str | None = None,
        settings: Settings | None = None,
        background: bool = True,
        **overrides: Any,
    ) -> Self:
        """Open a memory, and go on with what an earlier process left in its queue.

        Parameters
        ----------
        url
            Store: ``sqlite:///memory.db`` (made if it isn't there), ``memory://``, or a plugin's. Defaults
            to the setting `store`.
        scope
            Whose memory; a text is ``domain`` or ``domain/project``. Defaults to the setting `scope`.
        extractor
            An `Extractor`, or the word for one (see the setting `extractor`).
        llm
            A LangChain chat model, or ``provider:model``, for extraction and the contradiction check.
        redactor
            Takes personal data out of facts and summaries; by default only if the setting `redact` is on.
        embeddings
            A LangChain `Embeddings`, or the word for one (see the setting `embeddings`).
        settings
            Ready-made settings; otherwise they are read from ``GRAPHMEM_…`` variables and ``graphmem.toml``.
        background
            Extract on a thread as episodes arrive. If False, only `flush`, `ingest` and `backfill` extract.
        **overrides
            Single settings by name.

        Raises
        ------
        BackendUnavailable
            If the store can't be opened; the message names it and what to check.
        InvalidInput
            If a setting doesn't fit.
        """
        settings = settings or Settings.load(**overrides)
        engine = Engine.open(
            url or settings.store,
            settings,
            extractor=extractor,
            llm=llm,
            redactor=redactor,
            embeddings=embeddings,
            background=background,
        )
        return cls(engine, to_scope(scope if scope is not None else settings.scope))

    def in_scope(self, scope: Scope | str) -> Self:
        """Return the memory of another scope in the same store; closing either closes both."""
        return type(self)(self._engine, to_scope(scope))

    def close(self) -> None:
        """Let running work end and release the store; what waits in the queue stays there for the next start."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # writing

    def remember(self, turn: ItemLike, **fields: Any) -> Receipt:
        """Store a turn or document durably and return at once; it is extracted behind your back.

        Parameters
        ----------
        turn
            A `Turn`, a `Document`, a mapping of their fields, or just the text.
        **fields
            Fields of a `Turn` (with `title`: of a `Document`), if `turn` is a text or mapping.

        Returns
        -------
        Receipt
            The episode is on disk; ``await`` it, or call `flush`, to have its facts as well.

        Raises
        ------
        InvalidInput
            If a field doesn't fit, or a time has no zone.
        """
        episode = self._engine.loader.to_episode(self.scope, to_item(turn, **fields))
        [(episode_id, created)] = self._engine.backend.add_episodes(self.scope, [episode])
        self._engine.wake(self.scope)
        return Receipt(episode_id, created, self)

    def ingest(
        self, items: Iterable[ItemLike], *, skip_invalid: bool = False, on_progress: OnProgress | None = None
    ) -> LoadReport:
        """Store and extract many turns or documents; memory doesn't grow with their number.

        It can be repeated after an interruption: items with an `external_id` that is known are not stored again, and
        what was stored but not extracted is extracted now.

        Parameters
        ----------
        items
            As in `remember`; read lazily.
        skip_invalid
            Leave out items that can't be taken and report them, where an error would end the load.
        on_progress
            Called with a `Progress` after each batch.
        """
        report = self._engine.loader.ingest(self.scope, items, skip_invalid=skip_invalid, on_progress=on_progress)
        self._engine.index(self.scope)
        return report

    def add_facts(
        self,
        triples: Iterable[TripleLike],
        *,
        occurred_at: Time | None = None,
        skip_invalid: bool = False,
        on_progress: OnProgress | None = None,
    ) -> LoadReport:
        """Store ready-made facts; no language model has a part in it.

        Parameters
        ----------
        triples
            `Triple` objects, mappings of their fields, or (subject, relation, object); read lazily.
        occurred_at
            When they were stated: `valid_from` of those that name none. Defaults to now.
        skip_invalid, on_progress
            As in `ingest`. A batch (setting `batch_size`) is one transaction.
        """
        report = self._engine.loader.add_facts(
            self.scope,
            triples,
            occurred_at=None if occurred_at is None else to_time(occurred_at),
            skip_invalid=skip_invalid,
            on_progress=on_progress,
        )
        self._engine.wake(self.scope)
        return report

    def backfill(self, limit: int | None = None, *, on_progress: OnProgress | None = None) -> LoadReport:
        """Extract what is stored but waiting, at most `limit` episodes of this scope."""
        limit = None if limit is None else to_limit(limit)
        return self._engine.loader.extract_waiting(self.scope, limit, on_progress)

    def flush(self, timeout: float | None = None, *, episode_id: str | None = None) -> int:
        """Wait until nothing of this scope waits for extraction any more, and lend a hand.

        Parameters
        ----------
        timeout
            Seconds; None waits as long as it takes, retries included.
        episode_id
            Wait for this episode only.

        Returns
        -------
        int
            Episodes still waiting: 0 unless the time ran out or there is no extractor (then, of one or more, 1).
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        ids = None if episode_id is None else (episode_id,)
        query = EpisodeQuery(ids=ids, state="pending")
        pause = 0.002
        while waiting := len(self._engine.backend.find_episodes([self.scope], query, limit=1)):
            if not self._engine.can_extract or (deadline is not None and time.monotonic() >= deadline):
                return waiting
            if self.backfill(self._engine.extract_batch).extracted == 0:
                time.sleep(pause)  # others hold them, or they wait for their next try
                pause = min(pause * 2, 0.25)
        return 0

    # reading

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
            Whether to keep a trace of it, which `why` tells later; written behind your back.
        scopes
            Scopes to read instead of the memory's own. A trace belongs to one scope: with several, `trace` is refused.
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
        scope, *others = where
        if trace and others:
            raise InvalidInput(f"trace: a traced recall reads one scope, got {len(where)}")
        now, observer = utc_now(), Observer() if trace else None
        result = recall(self._engine.backend, where, query, options, self._engine.ontology, now, observer=observer)
        self._engine.recorder.count(where, [fact.id for fact in result.facts])
        if observer is None:
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
        graph: bool = True,
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
        graph
            Whether names that the question doesn't mention lead further.
        scopes
            As in `recall`.

        Raises
        ------
        IndexMismatch
            If the memory was indexed with another embedding model.
        """
        settings = self._engine.settings
        options = SearchOptions(
            k=to_limit(settings.search_limit if k is None else k),
            as_of=to_as_of(as_of),
            graph=graph,
            wait=settings.index_wait,
        )
        return self._engine.rag.search(self._scopes(scopes), query, options)

    def context(
        self,
        query: str,
        *,
        budget_tokens: int | None = None,
        count_tokens: Callable[[str], int] = estimate_tokens,
        as_of: AsOf | Time | None = None,
        scopes: Scopes | None = None,
    ) -> str:
        """Return facts and dated quotes for a question, for a prompt; empty if there is nothing, or nothing fits.

        Parameters
        ----------
        query, as_of, scopes
            As in `recall` and `search`.
        budget_tokens
            Tokens at most; defaults to 4 % of the context window (settings `context_share`, `context_window`).
        count_tokens
            How the model counts tokens; the default estimates them.
        """
        settings = self._engine.settings
        if budget_tokens is None:
            budget_tokens = int(settings.context_window * settings.context_share)
        limit = max(settings.recall_limit, min(200, budget_tokens // 12))
        known = self.recall(query, limit=limit, as_of=as_of, scopes=scopes)
        k = max(settings.search_limit, min(_MOST_QUOTES, budget_tokens // 40))
        said = worth_quoting(self.search(query, k=k, as_of=as_of, scopes=scopes).found)
        return render_context(known.facts, budget_tokens, count_tokens, episodes=said)

    def entities(
        self,
        query: str | None = None,
        *,
        entity_type: str | None = None,
        as_of: AsOf | Time | None = None,
        limit: int = 100,
        scopes: Scopes | None = None,
    ) -> list[Entity]:
        """Return entities: those that a text names, best first; without one, all in the order of their making.

        Parameters
        ----------
        query
            Names or words.
        entity_type
            Only this type.
        as_of
            Only what was recorded by `known` and had been seen by `valid`.
        limit
            Entities at most.
        scopes
            As in `recall`.
        """
        where = self._scopes(scopes)
        types = None if entity_type is None else (entity_type,)
        moment, limit = to_as_of(as_of), to_limit(limit)
        if query is None:
            found = EntityQuery(entity_types=types, as_of=moment)
            return self._engine.backend.find_entities(where, found, limit=limit)
        seeds = find_seeds(
            self._engine.backend,
            where,
            query,
            structural_weight=self._engine.settings.seed_structural_weight,
            limit=limit,
        )
        found = EntityQuery(ids=tuple(s.entity_id for s in seeds), entity_types=types, as_of=moment)
        by_id = {e.id: e for e in self._engine.backend.find_entities(where, found, limit=max(1, limit))}
        return [by_id[s.entity_id] for s in seeds if s.entity_id in by_id]

    def facts(
        self,
        name: str,
        *,
        as_of: AsOf | Time | None = None,
        limit: int = 100,
        scopes: Scopes | None = None,
    ) -> tuple[Fact, ...]:
        """Return the facts that an entity takes part in, newest first; `name` is one of its names."""
        where = self._scopes(scopes)
        moment, limit = to_as_of(as_of), to_limit(limit)
        ids = self._ids(where, name)
        if not ids:
            return ()
        query = EdgeQuery(touching=ids, as_of=moment)
        edges = self._engine.backend.find_edges(where, query, limit=limit, newest_first=True)
        return to_facts(self._engine.backend, where, edges)

    def history(
        self,
        source: str,
        relation: str | None = None,
        text: str | None = None,
        *,
        as_of: AsOf | Time | None = None,
        limit: int = 100,
        scopes: Scopes | None = None,
    ) -> tuple[Fact, ...]:
        """Return all versions of what is said of an entity, newest first: past, present and retracted.

        Parameters
        ----------
        source
            One of the entity's names.
        relation
            Only this relation, in any wording that maps to it.
        text
            Only facts that contain this text.
        as_of
            What had begun by `valid`, as it was known at `known`.
        limit
            Versions at most.
        scopes
            As in `recall`.
        """
        where = self._scopes(scopes)
        moment, limit = to_as_of(as_of), to_limit(limit)
        ids = self._ids(where, source)
        if not ids:
            return ()
        return history(
            self._engine.backend,
            where,
            ids,
            relation=None if relation is None else self._engine.ontology.relation(relation),
            text=text,
            as_of=moment,
            limit=limit,
        )

    def diff(self, start: Time, end: Time, *, limit: int = 1000, scopes: Scopes | None = None) -> Diff:
        """Return what became true, what ended and what was learned after `start` and until `end`."""
        return diff(self._engine.backend, self._scopes(scopes), to_time(start), to_time(end), limit=to_limit(limit))

    def episodes(self, ids: Sequence[str], *, scopes: Scopes | None = None) -> list[Episode]:
        """Return the episodes with these ids, in this order: where facts come from."""
        found = self._engine.backend.get_episodes(self._scopes(scopes), list(dict.fromkeys(ids)))
        return [found[i] for i in ids if i in found]

    def session(self, session_id: str, *, limit: int = 100, scopes: Scopes | None = None) -> list[Episode]:
        """Return the last episodes of a session, in the order in which they were stored."""
        query = EpisodeQuery(session_id=session_id)
        found = self._engine.backend.find_episodes(
            self._scopes(scopes), query, limit=to_limit(limit), newest_first=True
        )
        return found[::-1]

    # one for two

    def merge(self, names_or_ids: Iterable[str] | str, *, into: str) -> list[Merge]:
        """Take entities for one: their facts, names and mentions move, all in one transaction.

        Parameters
        ----------
        names_or_ids
            The entities that go, by name or id.
        into
            The one that stays.

        Returns
        -------
        list of Merge
            A row of the ledger for each, by whose id `unmerge` undoes it.

        Raises
        ------
        NotFound
            If one of them isn't in the scope.
        InvalidInput
            If a name stands for several entities (then give an id), or both are the same entity.
        """
        gone = [names_or_ids] if isinstance(names_or_ids, str) else list(names_or_ids)
        return merge_entities(self._engine.backend, self.scope, gone, into)

    def unmerge(self, merge_id: str) -> Unmerged:
        """Undo a merge: both entities are as they were, and what came in since stays with the one it was said of.

        Raises
        ------
        NotFound
            If the scope has no such merge.
        InvalidInput
            If it was undone before, or a later merge has to be undone first; the message names that one.
        """
        return unmerge(self._engine.backend, self.scope, merge_id)

    def merges(
        self, name: str | None = None, *, undone: bool = False, limit: int = 100, scopes: Scopes | None = None
    ) -> list[Merge]:
        """Return the merge ledger, newest first: by hand, and of new names that meant a known entity.

        Parameters
        ----------
        name
            Only merges into or of this entity; one of its names.
        undone
            Whether those that were undone are told, too.
        limit
            Merges at most.
        scopes
            As in `recall`.
        """
        where = self._scopes(scopes)
        query = MergeQuery(entity_ids=None if name is None else self._ids(where, name), undone=undone)
        return self._engine.backend.find_merges(where, query, limit=to_limit(limit), newest_first=True)

    # about the memory itself

    def stats(self) -> Stats:
        """Count what the scope holds, and tell what its queue could not extract."""
        return self._engine.stats(self.scope)

    def scopes(self) -> list[Scope]:
        """Return the scopes of the store that hold anything."""
        return self._engine.backend.scopes()

    def doctor(self) -> list[Check]:
        """Examine the store, the extractor and the queue."""
        return self._engine.doctor(self.scope)

    def evaluate(
        self,
        questions: Iterable[QuestionLike],
        *,
        ks: Sequence[int] = KS,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Evaluation:
        """Tell how well `search` answers questions whose answers are known, beside plain rankings.

        Parameters
        ----------
        questions
            `Question` objects or mappings of their fields: a question, the `external_id` of each episode that answers
            it, and perhaps a category and a scope.
        ks
            The k of recall@k, ascending.
        on_progress
            Called with the questions asked so far, and all.

        Raises
        ------
        InvalidInput
            If a question doesn't fit, or none has an answer in the memory.
        EmbeddingFailed
            If the embedding model fails.
        """
        return evaluate(self._engine.backend, self._engine.rag, self.scope, questions, ks, on_progress)

    def reindex(self, *, on_progress: Callable[[int], None] | None = None) -> int:
        """Build the index that `search` uses anew: for another embedding model, or where it is damaged.

        Interrupted, it goes on with the next search; until it is done, `search` finds what is indexed already.

        Parameters
        ----------
        on_progress
            Called with the episodes and facts indexed so far.

        Returns
        -------
        int
            Episodes and facts that were indexed.

        Raises
        ------
        EmbeddingFailed
            If the embedding model fails; what isn't indexed is tried again later.
        """
        return self._engine.rag.index.rebuild(self.scope, on_progress)

    @property
    def explorer(self) -> Explorer | None:
        """A program in which people look at the graph of the store, or None where the store comes with none."""
        return self._engine.backend.explorer

    # for async code

    async def aremember(self, turn: ItemLike, **fields: Any) -> Receipt:
        """`remember` for async code; ``await (await memory.aremember(…))`` waits for the extraction too."""
        return await asyncio.to_thread(self.remember, turn, **fields)

    async def aingest(self, items: Iterable[ItemLike], **options: Any) -> LoadReport:
        """`ingest` for async code."""
        return await asyncio.to_thread(self.ingest, items, **options)

    async def aadd_facts(self, triples: Iterable[TripleLike], **options: Any) -> LoadReport:
        """`add_facts` for async code."""
        return await asyncio.to_thread(self.add_facts, triples, **options)

    async def aflush(self, timeout: float | None = None) -> int:
        """`flush` for async code."""
        return await asyncio.to_thread(self.flush, timeout)

    async def arecall(self, query: str, **options: Any) -> RecallResult:
        """`recall` for async code."""
        return await asyncio.to_thread(self.recall, query, **options)

    async def awhy(self, trace_id: str, **options: Any) -> Trace:
        """`why` for async code."""
        return await asyncio.to_thread(self.why, trace_id, **options)

    async def arecalls(self, name: str | None = None, **options: Any) -> list[Trace]:
        """`recalls` for async code."""
        return await asyncio.to_thread(self.recalls, name, **options)

    async def asearch(self, query: str, **options: Any) -> SearchResults:
        """`search` for async code."""
        return await asyncio.to_thread(self.search, query, **options)

    async def acontext(self, query: str, **options: Any) -> str:
        """`context` for async code."""
        return await asyncio.to_thread(self.context, query, **options)

    async def afacts(self, name: str, **options: Any) -> tuple[Fact, ...]:
        """`facts` for async code."""
        return await asyncio.to_thread(self.facts, name, **options)

    async def ahistory(self, source: str, relation: str | None = None, **options: Any) -> tuple[Fact, ...]:
        """`history` for async code."""
        return await asyncio.to_thread(self.history, source, relation, **options)

    async def adiff(self, start: Time, end: Time, **options: Any) -> Diff:
        """`diff` for async code."""
        return await asyncio.to_thread(self.diff, start, end, **options)

    async def aclose(self) -> None:
        """`close` for async code."""
        await asyncio.to_thread(self.close)

    def _scopes(self, scopes: Scopes | None) -> tuple[Scope, ...]:
        return (self.scope,) if scopes is None else _one_or_many(scopes)

    def _traces(self, scopes: Sequence[Scope], query: RecallQuery, limit: int) -> list[Trace]:
        self._engine.recorder.write()  # what was just recalled can be asked about at once
        found = self._engine.backend.find_recalls(scopes, query, limit=limit, newest_first=True)
        return explain(self._engine.backend, scopes, found)

    def _ids(self, scopes: Sequence[Scope], name: str) -> tuple[str, ...]:
        key = canonical(name)
        found = (e.id for s in scopes for _, e in self._engine.backend.resolve_names(s, [key]))
        return tuple(dict.fromkeys(found))
