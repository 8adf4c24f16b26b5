"""`Administration`: methods that correct, move and maintain a memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import takewhile
from pathlib import Path, PurePath
from typing import Any

from graphmem.communities.results import Refreshed
from graphmem.diagnostics import queue_error
from graphmem.inference.service import LIMIT, Inferred, infer
from graphmem.ingest.bulk import OnProgress
from graphmem.inputs import MAX_LIMIT, to_as_of, to_limit, to_scopes, to_text, to_texts
from graphmem.memory.base import ScopedMemory, Scopes, Time, in_thread
from graphmem.models import (
    AsOf,
    CommunityAlgorithm,
    Episode,
    EpisodeFilter,
    EpisodeQuery,
    Merge,
    MergeQuery,
    RecallQuery,
    Scope,
    is_expired,
)
from graphmem.models.metadata import SOURCE_PATH
from graphmem.protocols import Explorer, expired_entities
from graphmem.recall.facts import count_entities, live
from graphmem.recall.options import RecallOptions
from graphmem.results import Check, EntityCounts, LoadReport, QueueError, Trace
from graphmem.search.evaluation import KS, Evaluation, QuestionLike, evaluate
from graphmem.search.fact_evaluation import FactEvaluation, KeyLine, compare_facts, read_key
from graphmem.telemetry import count, in_span
from graphmem.upkeep.eviction import Evicted, decay, decay_rule, evict, eviction_rule, is_interrupted
from graphmem.upkeep.export import Exported, OnRows, Target, export
from graphmem.upkeep.export_file import ImportSource
from graphmem.upkeep.forget import Forgotten, clear
from graphmem.upkeep.importing import Imported, ImportOptions, import_rows
from graphmem.upkeep.merge import merge_entities
from graphmem.upkeep.scope_rows import checksum, entity_called
from graphmem.upkeep.unmerge import Unmerged, unmerge
from graphmem.worker import Worker, WorkerState


class Administration(ScopedMemory):
    """Methods that correct, move and maintain a memory; `GraphMemory.admin` returns them.

    As in `GraphMemory`, each has an async form with the prefix ``a``, and `as_of`, `limit` and `scopes` mean the same.
    """

    @property
    def explorer(self) -> Explorer | None:
        """A program in which people look at the graph of the store, or None where the store comes with none."""
        return self._engine.backend.explorer

    def merge(self, names_or_ids: Iterable[str] | str, *, into: str) -> list[Merge]:
        """Merge entities into one, moving their facts, aliases and mentions in a single transaction.

        Parameters
        ----------
        names_or_ids
            Entities to remove, by name or id.
        into
            The entity that they become part of, by name or id.

        Returns
        -------
        list of Merge
            One row of the merge ledger for each; `unmerge` takes its id.

        Raises
        ------
        NotFound
            If one of them isn't in the scope.
        InvalidInput
            If a name is that of several entities (then give an id), or both are the same entity.
        """
        gone, into = to_texts("names_or_ids", names_or_ids), to_text("into", into)
        *gone, into = map(self._engine.stored_name, (*gone, into))
        self._engine.recorder.write()  # pending traces name entities that are merged
        merged = merge_entities(self._engine.backend, self.scope, gone, into, self._engine.ontology)
        count("graph_merges_total", len(merged))
        return merged

    def forget_missing(
        self,
        sources: Mapping[str, Collection[str] | None],
        *,
        folders: Iterable[str] = (),
        dry_run: bool = False,
    ) -> Forgotten:
        """Erase the episodes that their files no longer have, as `GraphMemory.ingest` with `update` does.

        An episode is of the file that its metadata name as ``source_path``, and goes as by `GraphMemory.forget`. An
        `external_id` of any of the sources stays.

        Parameters
        ----------
        sources
            Path of each file → external ids of all its items; None keeps its episodes.
        folders
            Paths of folders: episodes of files below them that are neither among the sources nor on the disk go, too;
            those of an archive that is on the disk stay.
        dry_run
            Change nothing, and report what would be erased.
        """
        engine = self._engine
        kept = {engine.stored_name(key) for ids in sources.values() for key in ids or ()}
        read = {engine.redacted(path) for path, ids in sources.items() if ids is not None}
        unread = {engine.redacted(path) for path, ids in sources.items() if ids is None}
        above = {PurePath(engine.redacted(folder)) for folder in folders}

        def is_missing(episode: Episode) -> bool:
            path = episode.metadata.get(SOURCE_PATH)
            if not isinstance(path, str) or path in unread or episode.external_id in kept:
                return False
            return path in read or _is_gone(PurePath(path), above)

        query = EpisodeQuery(filters=EpisodeFilter(metadata={SOURCE_PATH: {"$exists": True}}))
        return engine.forget_missing(self.scope, is_missing, query, dry_run=dry_run)

    def unmerge(self, merge_id: str) -> Unmerged:
        """Undo a merge: restore both entities; facts added since stay with the entity that they were stated of.

        Raises
        ------
        NotFound
            If the scope has no such merge.
        InvalidInput
            If it was undone before, or a later merge has to be undone first; the message names that one.
        """
        self._engine.recorder.write()
        return unmerge(self._engine.backend, self.scope, to_text("merge_id", merge_id), self._engine.ontology)

    def merges(
        self, name: str | None = None, *, undone: bool = False, limit: int = 100, scopes: Scopes | None = None
    ) -> list[Merge]:
        """Return the merge ledger, newest first: merges by hand, and new names resolved to a known entity.

        Parameters
        ----------
        name
            Only merges into or of this entity; one of its names.
        undone
            Whether to include undone merges.
        """
        where, backend, now = self._scopes(scopes), self._engine.backend, self._engine.clock()
        query = MergeQuery(entity_ids=None if name is None else self._ids(where, name), undone=undone)
        read = partial(backend.find_merges, where, query, newest_first=True)
        if not self._engine.has_expired(where):
            return read(limit=to_limit(limit))

        def unexpired(found: Sequence[Merge]) -> list[Merge]:
            ids = {i for one in found for i in (one.kept_id, one.merged.id)}
            gone = expired_entities(backend, where, ids, now, (mention for one in found for mention in one.mentions))
            return [_unquoted(one) for one in found if gone.isdisjoint((one.kept_id, one.merged.id))]

        return list(live(lambda most: read(limit=most), unexpired, to_limit(limit)))

    def backfill(
        self,
        limit: int | None = None,
        *,
        failed: bool = False,
        again: bool = False,
        on_progress: OnProgress | None = None,
    ) -> LoadReport:
        """Extract the waiting episodes of this scope, also if extraction is paused or they wait for a retry.

        Parameters
        ----------
        limit
            Maximum number of episodes; by default all.
        failed
            Retry failed episodes (`dead_letters`), too.
        again
            Extract all episodes again, for example with a better extractor: facts of an episode that the new extraction
            doesn't state are retracted, which `history` shows, and facts that they had ended are active again. An
            episode that fails keeps its old facts. Ready-made facts stay, but not those added with a `source`: these
            count as facts of that episode.
        on_progress
            As in `GraphMemory.ingest`.

        Raises
        ------
        InvalidInput
            If `failed` or `again` is True and there is no extractor.
        """
        limit = None if limit is None else to_limit(limit)
        if again:
            self._engine.queue.requeue_extracted(self.scope)
        if failed:
            self._engine.queue.retry_failed(self.scope)
        if self._engine.can_extract:
            self._engine.queue.retry_now([self.scope])
        return self._engine.extract_waiting(self.scope, limit, on_progress)

    def dead_letters(self, *, limit: int = 100, after: str = "") -> list[QueueError]:
        """Return the failed episodes with their errors; ``backfill(failed=True)`` retries them.

        Parameters
        ----------
        after
            Id of the last episode of the previous page.
        """
        now = self._engine.clock()
        read = partial(self._engine.backend.find_episodes, [self.scope], EpisodeQuery(state="failed"), after=after)

        def unexpired(found: Sequence[Episode]) -> list[QueueError]:
            return [queue_error(episode) for episode in found if not is_expired(episode.expires_at, now)]

        return list(live(lambda most: read(limit=most), unexpired, to_limit(limit)))

    def refresh_communities(self, algorithm: CommunityAlgorithm | None = None) -> Refreshed:
        """Detect communities again, starting from the current ones; those that persist keep their ids and names.

        All changes are written in one transaction; an unchanged graph writes nothing. Communities that no longer exist
        are ended, not deleted: `GraphMemory.communities` returns them with `as_of`.

        Parameters
        ----------
        algorithm
            ``label_propagation`` (one level) or ``leiden`` (levels); by default the setting `community_algorithm`.

        Raises
        ------
        InvalidInput
            If the algorithm is unknown.
        MissingExtra
            If it needs a package that isn't installed.
        """
        return self._engine.communities.refresh(self.scope, algorithm)

    def reindex(self, *, on_progress: Callable[[int], None] | None = None) -> int:
        """Rebuild the search index, for another embedding model or after damage.

        If interrupted, it is continued by the next search; until it is complete, `search` finds what is indexed.

        Parameters
        ----------
        on_progress
            Called with the number of episodes and facts indexed so far.

        Returns
        -------
        int
            Number of episodes and facts that this call indexed. Those that the background, a search or another process
            indexed meanwhile are left out.

        Raises
        ------
        EmbeddingFailed
            If the embedding model fails; the rest is indexed later.
        """
        return self._engine.search.index.rebuild(self.scope, on_progress)

    def evict(self, *, dry_run: bool = False) -> Evicted:
        """Delete superseded facts and archive entities that ended or were not seen for long, as the settings say.

        By default nothing is deleted: set `expired_edge_retention_days` or `max_entities`. It then also runs in the
        background, every `community_refresh_interval` processed episodes. `stats` counts the deleted facts.

        Parameters
        ----------
        dry_run
            Change nothing, and report what would be done.
        """
        self._engine.recorder.write()  # pending traces may name facts that are deleted
        return evict(self._engine.backend, self.scope, eviction_rule(self._engine.settings), _never, dry_run=dry_run)

    def expire(self, *, dry_run: bool = False) -> Forgotten:
        """Erase the episodes that have expired, as `GraphMemory.forget` does; `stats` counts them.

        It also runs in the background, within a minute; `search` and the other reads don't return them until then.

        Parameters
        ----------
        dry_run
            Change nothing, and report what would be erased.
        """
        return self._engine.expire(self.scope, dry_run=dry_run)

    def decay(self) -> int:
        """Apply decay to retrieval counts up to now, as the settings say; return the number of facts that have one.

        It also runs in the background, every `community_refresh_interval` processed episodes.
        """
        rule = decay_rule(self._engine.settings)
        done = 0
        if is_interrupted(self._engine.backend, self.scope):
            done = decay(self._engine.backend, self.scope, rule, _never)
        return max(done, decay(self._engine.backend, self.scope, rule, _never))

    @in_span("graphmem.infer")
    def infer(self, about: str | None = None, *, limit: int = LIMIT, dry_run: bool = False) -> Inferred:
        """Infer facts from others by the rules of the ontology; end those that are no longer implied.

        With `about`, the language model infers facts instead, from the stated ones within two hops of an entity. It
        names the facts that each follows from; what isn't grounded in them is dropped and counted.

        An inferred fact has the kind ``inferred``, a rule and premises, and ends, or is erased, in the transaction
        that ends or erases one of them. A second call changes nothing. Facts that were retracted or ended by hand
        aren't inferred again.

        Parameters
        ----------
        about
            Name or id of an entity for the language model, which is asked once, also in a dry run.
        limit
            Maximum number of facts inferred by rules in the scope, or of new facts about an entity.
        dry_run
            Change nothing, and report what would be stored, with examples.

        Raises
        ------
        InvalidInput
            If `limit` is below 1, several entities have the name, or there is no LLM for `about`.
        NotFound
            If no entity has the name.
        ExtractionFailed
            If the LLM fails.
        """
        limit = to_limit(limit)
        if about is None:
            return infer(*self._stored(), limit=limit, dry_run=dry_run, now=self._engine.clock())
        from graphmem.inference.by_model import infer_about

        question = self._engine.inference_question
        entity = entity_called(self._engine.backend, self.scope, self._engine.stored_name(about))
        now = self._engine.clock()
        return infer_about(*self._stored(), question, entity.id, limit=limit, dry_run=dry_run, now=now)

    def clear(self) -> Forgotten:
        """Erase the whole scope; other scopes of the store stay."""
        with self._engine.erasing(self.scope):
            return clear(self._engine.backend, self._engine.search.index, self.scope)

    def export(
        self, target: Target, *, vectors: bool = True, force: bool = False, on_rows: OnRows | None = None
    ) -> Exported:
        """Write all rows of the scope as lines of JSON, for another store or as a backup.

        Parameters
        ----------
        target
            A path, or an open file of text or bytes. A file at a path appears only when it is complete, and only its
            owner can read it. An earlier export is replaced; a database never is.
        vectors
            Whether to include the index; otherwise the importing memory builds its own.
        force
            Whether a file that graphmem did not write may be replaced.
        on_rows
            Called from time to time with the number of rows written so far.

        Raises
        ------
        InvalidInput
            If the file may not be replaced or can't be written; the message says why.
        """
        self._engine.recorder.write_if_room()  # pending traces are part of it
        return export(self._engine.backend, self.scope, target, vectors=vectors, force=force, on_rows=on_rows)

    def import_(
        self,
        source: ImportSource,
        *,
        rename: bool = False,
        vectors: bool = True,
        cut_off: bool = False,
        on_rows: OnRows | None = None,
    ) -> Imported:
        """Store the rows of an exported memory in this scope; interrupted, it can be run again.

        Parameters
        ----------
        source
            A path, or an open file of text or bytes. It is checked first if it can be read twice.
        rename
            Accept a file of another scope; its rows become rows of this one.
        vectors
            Whether to import the index of the file, too; otherwise it is rebuilt.
        cut_off
            Accept a file that is cut off or lacks lines; `Imported.complete` is then False.
        on_rows
            Called after each batch with the number of rows stored so far.

        Raises
        ------
        InvalidInput
            If the file is not an export, is of another version or scope, is cut off or modified, or has an invalid row;
            the message names the line.
        Conflict
            If the scope holds other rows under the same names, or the store the same ids in another scope.
        """
        self._engine.recorder.write()
        redaction = self._engine.redaction
        options = ImportOptions(
            rename=rename,
            vectors=vectors and redaction is None,  # vectors may reveal redacted text
            cut_off=cut_off,
            require=None if redaction is None else redaction.require_redacted,
            ontology=self._engine.ontology,
        )
        done = import_rows(self._engine.backend, self.scope, source, options, on_rows)
        self._engine.search.index.reset_cursor(self.scope)
        self._engine.wake(self.scope)
        self._engine.schedule_upkeep(self.scope)
        return done

    def checksum(self) -> str:
        """Return a checksum of the rows without the index, equal for equal rows in any store and scope."""
        return checksum(self._engine.backend, self.scope)

    def scopes(self) -> list[Scope]:
        """Return the scopes of the store that have rows."""
        return self._engine.backend.scopes()

    def work(
        self,
        stopping: threading.Event,
        *,
        scopes: Scopes | None = None,
        seconds: float = 1.0,
        on_state: Callable[[WorkerState], None] = lambda _: None,
    ) -> None:
        """Extract, index and maintain what other processes store, until `stopping` is set; see `Worker`.

        The memory has to be open with background work, and closing it releases what was claimed.

        Parameters
        ----------
        stopping
            Set it, from a signal handler or another thread, to return.
        scopes
            Scopes, or their texts, to serve until the memory is closed; by default all scopes of the store, also new
            ones.
        seconds
            Polling interval of the store.
        on_state
            Called with the state after each poll, and at the end.

        Raises
        ------
        InvalidInput
            If the memory was opened with ``background=False``.
        """
        served = None if scopes is None else to_scopes(scopes)
        Worker(self._engine, served, seconds=seconds).run(stopping, on_state)

    def load_models(self) -> None:
        """Load the local models now: the embedding model, and spaCy if it extracts. Otherwise the first use does.

        Models of services aren't called.

        Raises
        ------
        EmbeddingFailed
            If the embedding model can't be loaded.
        """
        self._engine.load_models()

    def doctor(self) -> list[Check]:
        """Examine the store, the extractor and the queue."""
        return self._engine.diagnostics.doctor(self.scope)

    def evaluate(
        self,
        questions: Iterable[QuestionLike],
        *,
        ks: Sequence[int] = KS,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Evaluation:
        """Measure how well `search` answers questions with known answers, and compare it with baselines.

        Parameters
        ----------
        questions
            `Question` objects or mappings of their fields: a question, the `external_id` of each episode that answers
            it, and optionally a category and a scope.
        ks
            The k of recall@k, ascending.
        on_progress
            Called with the number of questions asked so far, and of all.

        Raises
        ------
        InvalidInput
            If a question is invalid, or none has an answer in the memory.
        EmbeddingFailed
            If the embedding model fails.
        """
        return evaluate(self._engine.backend, self._engine.search, self.scope, questions, ks, on_progress)

    def evaluate_facts(
        self, key: Iterable[KeyLine | Mapping[str, Any] | str | Path], *, limit: int | None = None
    ) -> FactEvaluation:
        """Compare the facts of the memory with a key: what a careful reader of the same texts would have kept.

        Parameters
        ----------
        key
            `KeyFact`, `NeverClaim` and `KeyQuestion` objects, mappings of their fields, or paths of JSON Lines files.
        limit
            Maximum number of facts that answer a question; by default the setting `recall_limit`.

        Raises
        ------
        InvalidInput
            If a line is invalid, or there is none; for a file the message names the line.
        """
        lines: list[KeyLine | Mapping[str, Any]] = []
        for item in key:
            lines += read_key([item]) if isinstance(item, str | Path) else [item]

        def recall(question: str, at: datetime | None) -> list[str]:
            options = RecallOptions.of(self._engine.settings, limit=limit, as_of=None if at is None else AsOf(at))
            return [fact.id for fact in self._engine.recall.recall((self.scope,), question, options)]

        return compare_facts(self._engine.backend, self.scope, lines, recall)

    def entity_counts(
        self,
        query: str | None = None,
        *,
        entity_type: str | None = None,
        as_of: AsOf | Time | None = None,
        after: str | None = None,
        limit: int = 100,
        scopes: Scopes | None = None,
    ) -> list[EntityCounts]:
        """Return entities with their numbers of mentions and facts; without a query, those with the most first.

        Parameters
        ----------
        query, entity_type, as_of, scopes
            As in `GraphMemory.entities`; with a query the order is the same, too.
        after
            Id of the last entity of the previous page, or "" for the first page: the order is then that of
            `GraphMemory.entities`, and only a page of entities is counted.
        limit
            Maximum number of entities. With neither `query` nor `after`, all are counted nevertheless.
        """
        where, moment, limit = self._scopes(scopes), to_as_of(as_of), to_limit(limit)
        by_counts = query is None and after is None
        found = self._entities(where, query, entity_type, moment, MAX_LIMIT if by_counts else limit, after or "")
        counted = count_entities(self._engine.backend, where, found, moment)
        if by_counts:
            counted.sort(key=lambda one: (-one.mentions - one.facts, one.entity.name, one.entity.id))
        return counted[:limit]

    def traces(
        self,
        name: str | None = None,
        *,
        fact_id: str | None = None,
        limit: int = 20,
        scopes: Scopes | None = None,
    ) -> list[Trace]:
        """Return traces of recalls and searches, newest first.

        Parameters
        ----------
        name
            Only traces that started at this entity or reached a fact of it; one of its names.
        fact_id
            Only traces that reached this fact, returned or not.
        """
        where = self._scopes(scopes)
        query = RecallQuery(
            entity_ids=None if name is None else self._ids(where, name),
            edge_ids=None if fact_id is None else (fact_id,),
        )
        return self._engine.recall.traces(where, query, to_limit(limit))

    # Typed async forms.
    amerge = in_thread(merge, "jobs")
    aunmerge = in_thread(unmerge, "jobs")
    aforget_missing = in_thread(forget_missing, "jobs")
    amerges = in_thread(merges)
    abackfill = in_thread(backfill, "jobs")
    adead_letters = in_thread(dead_letters)
    arefresh_communities = in_thread(refresh_communities, "jobs")
    areindex = in_thread(reindex, "jobs")
    aevict = in_thread(evict, "jobs")
    adecay = in_thread(decay, "jobs")
    aexpire = in_thread(expire, "jobs")
    ainfer = in_thread(infer, "jobs")
    aclear = in_thread(clear, "jobs")
    aexport = in_thread(export, "jobs")
    aimport_ = in_thread(import_, "jobs")
    achecksum = in_thread(checksum, "jobs")
    ascopes = in_thread(scopes)
    awork = in_thread(work, "work")
    aload_models = in_thread(load_models, "jobs")
    adoctor = in_thread(doctor)
    aevaluate = in_thread(evaluate, "jobs")
    aevaluate_facts = in_thread(evaluate_facts, "jobs")
    aentity_counts = in_thread(entity_counts)
    atraces = in_thread(traces)


def _unquoted(merge: Merge) -> Merge:
    """Return a merge without the facts and summaries that may quote what has expired."""
    kept, merged = merge.kept.changed(summary=""), merge.merged.changed(summary="")
    return merge.changed(kept=kept, merged=merged, edges=(), folded=())


def _never() -> bool:
    return False


def _is_gone(path: PurePath, folders: Collection[PurePath]) -> bool:
    """Return whether a file below one of these folders is not on the disk, and neither is an archive that it is in."""
    inside = list(takewhile(lambda each: each not in folders, (path, *path.parents)))
    if len(inside) in (0, len(path.parents) + 1) or any(map(os.path.isfile, inside[1:])):
        return False
    try:
        Path(path).stat()
    except OSError as error:
        return isinstance(error, (FileNotFoundError, NotADirectoryError))
    return False
