"""`GraphMemory`: the everyday methods of a memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from graphmem.communities.results import FoundCommunity
from graphmem.embed import Embeddings
from graphmem.engine import Engine
from graphmem.errors import InvalidInput
from graphmem.ingest.bulk import OnProgress
from graphmem.ingest.corrections import end_fact, retract_fact
from graphmem.inputs import (
    FilterLike,
    ItemFields,
    ItemLike,
    TripleLike,
    to_as_of,
    to_filter,
    to_item,
    to_limit,
    to_number,
    to_scope,
    to_text,
    to_texts,
    to_time,
)
from graphmem.memory.admin import Administration
from graphmem.memory.base import Receipt, Scopes, Time, in_thread
from graphmem.memory.exploration import Exploration
from graphmem.models import AsOf, EdgeType, Episode, Scope
from graphmem.protocols import Extractor, Redactor
from graphmem.recall.options import RecallOptions
from graphmem.results import Fact, LoadReport, RecallResult, Stats, StrategyChoice
from graphmem.search.context import Context, compose_context, estimate_tokens, most_facts, most_quotes
from graphmem.search.rerank import CrossEncoder
from graphmem.search.results import ExpansionConfig, Fusion, SearchOptions, SearchResults
from graphmem.settings import Settings
from graphmem.telemetry import in_span, span
from graphmem.text.first_person import with_asker
from graphmem.trust import Trust
from graphmem.upkeep.forget import Forgotten, forget

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from graphmem.ingest.formats.source import DateOrder, Format

_OMITTED = 100  # episodes that a context reads beyond those that it may quote, as some are omitted


def _waited(timeout: float | None, episode_id: str | None) -> tuple[float | None, str | None]:
    """Return the arguments of a flush after checking their types."""
    return (
        None if timeout is None else to_number("timeout", timeout),
        None if episode_id is None else to_text("episode_id", episode_id),
    )


class GraphMemory(Exploration):
    """A memory: one scope of one store, and the background work on it.

    Open it with `open`. Methods are safe to call from any thread. Each has an async form with the prefix ``a``
    (`aremember`), which runs on a thread of the memory; a task that is cancelled while it waits leaves at once, and
    the call is completed. Times are aware datetimes or ISO 8601 texts. `admin` has the methods that correct, move
    and maintain a memory.

    These parameters mean the same in every method:

    query
        A question in plain words; at most 512 characters of it are read.
    as_of
        An `AsOf`, or the time at which something held. By default the present.
    limit
        Maximum number of results.
    scopes
        Scopes, or their texts, to read instead of the memory's own.
    """

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
        cross_encoder: CrossEncoder | None = None,
        settings: Settings | Mapping[str, Any] | None = None,
        background: bool = True,
        clock: Callable[[], datetime] | None = None,
        **overrides: Any,
    ) -> Self:
        """Open a memory, and continue with what an earlier process left in its queue.

        Parameters
        ----------
        url
            Store: ``sqlite:///memory.db`` (created if missing), ``memory://``, or a plugin's; else the setting `store`.
        scope
            Scope of the memory, as in `in_scope`; else the setting `scope`.
        extractor
            An `Extractor`, or the name of one (setting `extractor`).
        llm
            A LangChain chat model, or ``provider:model``, for extraction and the contradiction check.
        redactor
            Removes personal data (setting `redact`); by default a `PatternRedactor` if that setting is on.
        embeddings
            A LangChain `Embeddings`, or the name of a model (setting `embeddings`).
        cross_encoder
            Reranks the best episodes of each search: a LangChain `BaseCrossEncoder`, or an object with its `score`.
        background
            Extract on a thread as episodes arrive. If False, only these extract: `flush`, `ingest`, `Receipt.wait`,
            `admin.backfill`.
        clock
            Returns the present, by which episodes end, expire and are due for extraction; by default the system's time.
        settings, **overrides
            `Settings` with all of them, or single ones, as a mapping or by name; the others are from ``GRAPHMEM_…``
            variables and ``graphmem.toml``.
        """
        settings = Settings.of(settings, overrides)
        engine = Engine.open(
            url or settings.store,
            settings,
            extractor=extractor,
            llm=llm,
            redactor=redactor,
            embeddings=embeddings,
            cross_encoder=cross_encoder,
            background=background,
            clock=clock,
        )
        return cls(engine, to_scope(scope if scope is not None else settings.scope))

    def in_scope(self, scope: Scope | str) -> Self:
        """Return the memory of another scope in the same store; closing either closes both.

        A text is ``domain`` or ``domain/project``, split at the first "/" and not decoded: ``f"users/{user_id}"`` is a
        different scope for every `user_id`, whatever its characters.

        Raises
        ------
        InvalidInput
            If a part of the text is empty or longer than 256 characters.
        """
        return type(self)(self._engine, to_scope(scope))

    @cached_property
    def admin(self) -> Administration:
        """Methods that correct, move and maintain this memory."""
        return Administration(self._engine, self.scope)

    def close(self, seconds: float | None = None) -> None:
        """Let running work end and release the store; what waits in the queue stays there for the next start.

        Parameters
        ----------
        seconds
            Maximum time to wait for a running extraction; by default twice the time limit of a model's call.
        """
        self._engine.close(seconds)

    async def aclose(self, seconds: float | None = None) -> None:
        """`close` for async code."""
        await asyncio.to_thread(self._engine.close, seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def remember(self, turn: ItemLike, **fields: Unpack[ItemFields]) -> Receipt:
        """Store a turn or document durably and return immediately; extraction runs in the background.

        The receipt says that the episode is on disk; ``await`` it, or call `flush`, to have its facts as well.

        Parameters
        ----------
        turn, **fields
            A `Turn` or `Document`; or a text, a message of a chat framework or a mapping, with further fields
            (`ItemFields`).

        Raises
        ------
        InvalidInput
            If a field is invalid, or a time has no zone.
        """
        with span("graphmem.remember") as one:
            episode = self._engine.loader.to_episode(self.scope, to_item(turn, **fields))
            [(episode_id, created)] = self._engine.backend.add_episodes(self.scope, [episode])
            one.set({"graphmem.created": created, **self._engine.stored_text(episode)})
        self._engine.wake(self.scope)
        return Receipt(episode_id, created, self._engine, self.scope)

    async def aremember(self, turn: ItemLike, **fields: Unpack[ItemFields]) -> Receipt:
        """`remember` for async code."""
        engine, scope = self._engine, self.scope
        with span("graphmem.remember") as one:

            def read() -> Episode:
                episode = engine.loader.to_episode(scope, to_item(turn, **fields))
                one.set(engine.stored_text(episode))
                return episode

            stored = await engine.turns.store(scope, read)
            one.set({"graphmem.created": stored[1]})
        return Receipt(*stored, engine, scope)

    def ingest(
        self,
        items: Iterable[ItemLike] | Path,
        *,
        file_format: Format | None = None,
        timezone: tzinfo | str | None = None,
        date_order: DateOrder | None = None,
        columns: Mapping[str, str] | None = None,
        encoding: str | None = None,
        trust: Trust | None = None,
        update: bool = False,
        delete_missing: bool = False,
        skip_invalid: bool = False,
        dry_run: bool = False,
        on_progress: OnProgress | None = None,
    ) -> LoadReport:
        """Store and extract many turns or documents; after an interruption it can be repeated.

        Items with a known `external_id` are not stored again; what was stored but not extracted is extracted now.

        Parameters
        ----------
        items
            As in `remember`; read lazily. Or the `pathlib.Path` of a file, a folder or a zip archive, read as by
            `graphmem ingest`.
        file_format, timezone, date_order, columns, encoding, trust
            For files: the format, if it can't be detected; the zone of times without one (``"Europe/Berlin"``); the
            order of day, month and year in dates such as 3/4/2026; field of a turn → column of a CSV file or field
            of JSON records, or several columns with commas between them; the encoding, if it isn't UTF-8; the trust of
            records that state none, as in `Turn`: ``trusted`` for your own minutes, which otherwise are ``external``.
        update
            Items that differ from what is stored under their `external_id` replace it, and of files what they no longer
            have is erased first. What is replaced goes as by `forget`.
        delete_missing
            For a folder or an archive, `update`, and erase what was read from files that are gone.
        skip_invalid
            Skip and report invalid items and lines instead of raising an error. Of a file with one, nothing is erased.
        dry_run
            Change nothing, and count what would be stored, replaced and removed.
        on_progress
            Called with a `Progress` after each batch that was extracted or indexed.

        Raises
        ------
        InvalidInput
            If an item is invalid (of a file, what precedes it is stored), a path leads to nothing readable, or a
            parameter for files is given without a path.
        """
        if isinstance(items, Path):
            from graphmem.ingest.files import FileLoad, FileOptions, find_files

            options = FileOptions(file_format, timezone, date_order, columns or {}, encoding, trust)
            names, redact = self._engine.ontology.short_names, self._engine.redacted
            unread = Counter[str]()
            files = find_files([items], unread, columns)
            load = FileLoad(
                files,
                options,
                names,
                skip_invalid=skip_invalid,
                redact=redact,
                unread=unread,
                folders=(items,),
                update=update,
                delete_missing=delete_missing,
                dry_run=dry_run,
            )
            return load.run(self, on_progress, self.admin)
        of_files = (file_format, timezone, date_order, columns, encoding, trust)
        if delete_missing or any(option is not None for option in of_files):
            raise InvalidInput(
                "ingest: file_format, timezone, date_order, columns, encoding, trust and delete_missing are for files; "
                "give the pathlib.Path of one"
            )
        if dry_run:
            return self._engine.loader.preview(self.scope, items, skip_invalid=skip_invalid, update=update)
        return self._engine.ingest(self.scope, items, skip_invalid=skip_invalid, on_progress=on_progress, update=update)

    def add_facts(
        self,
        triples: Iterable[TripleLike],
        *,
        occurred_at: Time | None = None,
        skip_invalid: bool = False,
        on_progress: OnProgress | None = None,
    ) -> LoadReport:
        """Store ready-made facts, without a language model.

        Adding the same triples again changes nothing, even if one of them has ended since; with another `occurred_at`
        they are stated again, and hold from then on.

        Parameters
        ----------
        triples
            `Triple` objects, mappings of their fields, or (subject, relation, object); read lazily.
        occurred_at
            When they were stated: `valid_from` of those that name none. Defaults to now.
        skip_invalid, on_progress
            As in `ingest`. A batch (setting `batch_size`) is one transaction.
        """
        moment = None if occurred_at is None else to_time(occurred_at, "occurred_at")
        return self._engine.add_facts(self.scope, triples, moment, skip_invalid=skip_invalid, on_progress=on_progress)

    def flush(self, timeout: float | None = None, *, episode_id: str | None = None) -> int:
        """Wait until no episode of this scope, or not this one, waits for extraction, and help with the extraction.

        It returns 0, or 1 if episodes still wait: after `timeout` seconds, without an extractor, or if extraction is
        paused until its configuration is repaired.
        """
        return self._engine.flush(self.scope, *_waited(timeout, episode_id))

    async def aflush(self, timeout: float | None = None, *, episode_id: str | None = None) -> int:
        """`flush` for async code."""
        return await self._engine.aflush(self.scope, *_waited(timeout, episode_id))

    def recall(
        self,
        query: str,
        *,
        asked_by: str | None = None,
        limit: int | None = None,
        edge_types: Iterable[EdgeType | str] | str = (),
        as_of: AsOf | Time | None = None,
        max_hops: int | None = None,
        temporal_decay_rate: float | None = None,
        strategy: StrategyChoice | None = None,
        filters: FilterLike | None = None,
        min_trust: Trust = "untrusted",
        episodes: int | None = None,
        include_inferred: bool = True,
        trace: bool = False,
        scopes: Scopes | None = None,
    ) -> RecallResult:
        """Return facts for a question, best first, each with its seed, path, hop and the parts of its score.

        Parameters
        ----------
        asked_by
            Name of who asks: "I" and "my" in the question are that person. By default it is the only person who speaks,
            if there is just one beside an assistant.
        edge_types, max_hops
            Types to follow, none means all; and hops from the entities that the question names.
        temporal_decay_rate
            In [0, 10]; above 0, newer facts gain.
        strategy
            How the graph is walked: bfs (nearest first), spreading, ppr, astar, or auto: by the kind of question.
        filters
            Only facts that an episode states which this filter matches.
        min_trust
            Only facts that a source of at least this trust states: ``untrusted``, ``external`` or ``trusted``.
        episodes
            Number of best episodes of a search whose facts are added, 0 to walk the graph alone; by default the
            setting `recall_episodes`.
        include_inferred
            Whether to include facts that `admin.infer` inferred; they rank below stated ones.
        trace
            Whether to store a trace, in the background, which `why` explains later. A trace belongs to one scope:
            with several, `trace` is refused.
        """
        options = RecallOptions.of(
            self._engine.settings,
            limit=limit,
            strategy=strategy,
            max_hops=max_hops,
            temporal_decay_rate=temporal_decay_rate,
            edge_types=tuple(map(self._engine.ontology.require_edge_type, to_texts("edge_types", edge_types))),
            as_of=to_as_of(as_of),
            asked_by=asked_by and self._engine.stored_name(asked_by),
            filters=self._engine.stored_filter(filters),
            min_trust=min_trust,
            episodes=episodes,
            include_inferred=include_inferred,
        )
        question = with_asker(to_text("query", query), asked_by)
        found = self._engine.recall.recall(self._scopes(scopes), question, options, trace=trace)
        return found if question == query else found.changed(query=self._engine.redacted(query))

    def search(
        self,
        query: str,
        *,
        asked_by: str | None = None,
        k: int | None = None,
        as_of: AsOf | Time | None = None,
        expansion: ExpansionConfig | None = None,
        fusion: Fusion = "weighted",
        diversity: float = 0.0,
        filters: FilterLike | None = None,
        min_trust: Trust = "untrusted",
        min_confidence: float | None = None,
        trace: bool = False,
        scopes: Scopes | None = None,
    ) -> SearchResults:
        """Return the episodes that answer a question, best first, each with the reasons for its rank.

        Parameters
        ----------
        k, as_of
            Maximum number of episodes, and when they had to have occurred and been recorded.
        expansion
            Whether and how names lead to further episodes; by default by personalized PageRank.
        fusion
            How the channels are combined: "weighted" (the measured default), or "rrf" (reciprocal ranks).
        diversity
            In [0, 1): above 0, episodes unlike those before them gain (MMR).
        filters
            An `EpisodeFilter`, or a mapping of its fields: only episodes that it matches are ranked.
        min_trust
            Only episodes of sources with at least this trust: ``untrusted``, ``external`` or ``trusted``.
        min_confidence
            Return nothing if the probability of an answer is below this; by default the setting of that name.
        asked_by, trace
            As in `recall`.

        Raises
        ------
        IndexMismatch
            If the memory was indexed with another embedding model.
        """
        query = with_asker(to_text("query", query), asked_by)
        settings, service = self._engine.settings, self._engine.search
        options = SearchOptions(
            k=to_limit(settings.search_limit if k is None else k, "k"),
            as_of=to_as_of(as_of),
            expansion=expansion or ExpansionConfig(),
            expansion_boost=settings.expansion_boost,
            fusion=fusion,
            diversity=diversity,
            filters=self._engine.stored_filter(filters),
            min_trust=min_trust,
            min_confidence=settings.min_confidence if min_confidence is None else min_confidence,
            asked_by=asked_by and self._engine.stored_name(asked_by),
            wait=settings.index_wait,
        )
        if trace:
            return service.traced(self._scopes(scopes), query, options, self._engine.recorder)
        return service.search(self._scopes(scopes), query, options)

    @in_span("graphmem.context")
    def context(
        self,
        query: str,
        *,
        asked_by: str | None = None,
        budget_tokens: int | None = None,
        count_tokens: Callable[[str], int] = estimate_tokens,
        as_of: AsOf | Time | None = None,
        filters: FilterLike | None = None,
        min_trust: Trust = "external",
        min_confidence: float | None = None,
        flagged: bool = False,
        omit: Callable[[Episode], bool] | None = None,
        explain: bool = False,
        scopes: Scopes | None = None,
    ) -> Context:
        """Return facts and dated quotes for a question, for a prompt; empty if there is nothing, or nothing fits.

        A question about everything ("What are the main topics?") is answered by communities, which come first. "I" is
        `asked_by`, as in `recall`.

        Parameters
        ----------
        budget_tokens
            Maximum number of tokens; by default 800, by the settings `context_share` and `context_window`.
        count_tokens
            Function that counts tokens as the model does; the default estimates them.
        filters
            As in `recall` and `search`; communities, which are about everything, are then left out.
        min_trust
            Trust that sources need; above ``external``, communities are left out, as they mix sources.
        min_confidence
            As in `search`: without a probable answer, there are neither quotes nor facts. By default the setting.
        flagged
            Whether to quote texts that are flagged as prompt injections, and other untrusted ones, too; no effect if
            `min_trust` is trusted.
        omit
            Function that returns whether an episode isn't to be quoted, such as a message that the prompt has anyway.
        explain
            Whether the `lines` of the result tell why each is there. The result is a text in any case.
        """
        settings, moment = self._engine.settings, to_as_of(as_of)
        budget = int(settings.context_window * settings.context_share)
        if budget_tokens is not None:
            budget = int(to_number("budget_tokens", budget_tokens))
        least: Trust = "untrusted" if flagged and min_trust != "trusted" else min_trust
        where, least_sure = self._scopes(scopes), settings.min_confidence
        if min_confidence is not None:
            least_sure = to_number("min_confidence", min_confidence)
        most = most_quotes(budget, settings.search_limit)
        found = self.search(
            query,
            asked_by=asked_by,
            k=most if omit is None else most + _OMITTED,
            as_of=moment,
            filters=filters,
            min_trust=least,
            min_confidence=least_sure,
            scopes=where,
        )
        query = with_asker(query, asked_by)
        options = RecallOptions.of(
            settings,
            limit=most_facts(budget, settings.recall_limit),
            as_of=moment,
            asked_by=asked_by and self._engine.stored_name(asked_by),
            filters=self._engine.stored_filter(filters),
            min_trust=least,
        )
        # a recall at a time searches also what was told later about that time
        best = found.changed(found=found.found[:most])
        evidence = best.evidence if moment is None and options.episodes else None
        if omit is not None:
            found = found.changed(found=tuple(one for one in found.found if not omit(one.episode))[:most])
        known = self._engine.recall.recall(where, query, options, evidence=evidence)
        about = self._overview(where, query, moment) if least != "trusted" and not to_filter(filters) else ()
        return compose_context(
            found,
            known,
            about,
            query,
            budget,
            count_tokens,
            min_trust=least,
            min_confidence=least_sure,
            explain=explain,
        )

    def _overview(self, scopes: Sequence[Scope], question: str, as_of: AsOf | None) -> Sequence[FoundCommunity]:
        """Return the communities that answer a question about everything, unless they may be about what has expired."""
        found = self._engine.communities.overview(scopes, self._engine.redacted(question), as_of)
        return () if found and self._engine.has_expired(scopes) else found

    def forget(
        self,
        entity: str | None = None,
        *,
        episode: str | None = None,
        session: str | None = None,
        speaker: str | None = None,
        with_episodes: bool = False,
        dry_run: bool = False,
        clean_files: bool = True,
    ) -> Forgotten:
        """Erase a person, thing, text or session: rows, vectors, traces, evidence of merges, caches and files.

        A fact is erased when all episodes that state it are. One that other episodes state as well stays without the
        erased ones, and without its sentence if that came from there. All of it is one transaction. The result counts
        what went, and lists what stays (`remaining`) and what could not be erased now (`left`), and why.

        Parameters
        ----------
        entity
            Name or id. Its facts and names are erased, and values that only it had. Episodes that it said, that mention
            it or that contain one of its names stay and are reported. A name without an entity is searched in texts.
        episode
            Id or `external_id`.
        session, speaker
            Session or speaker all of whose episodes are erased.
        with_episodes
            Erase the reported episodes of an entity, too; of ready-made facts only the lines about it.
        dry_run
            Change nothing, and report what would be erased, with examples.
        clean_files
            False leaves the bytes in files to the background work, if there is any: for frequent small erasures, since
            SQLite rewrites its whole file. It does so every minute, and when the memory is closed.

        Raises
        ------
        NotFound
            If there is no such thing in the scope.
        InvalidInput
            If not exactly one thing is named, or several entities have the name (then give an id).
        """
        given = {"entity": entity, "episode": episode, "session": session, "speaker": speaker}
        names = {kind: name and self._engine.stored_name(to_text(kind, name)) for kind, name in given.items()}
        (backend, scope, ontology), index = self._stored(), self._engine.search.index
        clean = None if clean_files else self._engine.scrub_later
        options: dict[str, Any] = {"with_episodes": with_episodes, "dry_run": dry_run, "clean": clean}
        with self._engine.erasing(scope, dry_run=dry_run):
            done = forget(backend, index, scope, ontology, **names, **options)
        self._engine.wake(self.scope)
        return done

    def retract(self, fact_id: str, *, reason: str = "") -> Fact:
        """Record that a fact was never true, and why, and return it. What it had ended goes on; the history has both.

        Raises `NotFound` if the scope has no such fact.
        """
        return self._fact(retract_fact(*self._stored(), to_text("fact_id", fact_id), self._reason(reason)))

    def end(self, fact_id: str, *, at: Time | None = None, reason: str = "") -> Fact:
        """Record when a fact stopped or will stop being true, by default now, and why, and return it.

        Replaces a known end that is in the future or later than the new one.
        Raises `NotFound` if the scope has no such fact, `InvalidInput` if it hadn't begun or had ended by then.
        """
        moment = None if at is None else to_time(at, "at")
        return self._fact(end_fact(*self._stored(), to_text("fact_id", fact_id), moment, self._reason(reason)))

    def stats(self) -> Stats:
        """Count what the scope holds, and report what its queue could not extract."""
        return self._engine.diagnostics.stats(self.scope)

    # Typed async forms.
    aingest = in_thread(ingest, "jobs")
    aadd_facts = in_thread(add_facts, "jobs")
    arecall = in_thread(recall)
    asearch = in_thread(search)
    acontext = in_thread(context)
    aforget = in_thread(forget, "jobs")
    aretract = in_thread(retract, "jobs")
    aend = in_thread(end, "jobs")
    astats = in_thread(stats)
