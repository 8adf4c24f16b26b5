"""Administration of a memory: merging, forgetting, eviction, export, import, evaluation, reindexing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from graphmem.inputs import to_limit
from graphmem.memory.part import Part, Scopes
from graphmem.models import Merge, MergeQuery, Scope
from graphmem.results import Check, Stats
from graphmem.search.evaluation import KS, Evaluation, QuestionLike, evaluate
from graphmem.upkeep import forget
from graphmem.upkeep.eviction import Evicted, decay, decay_rule, evict, eviction_rule, is_interrupted
from graphmem.upkeep.export import Exported, OnRows, Source, Target, export
from graphmem.upkeep.forget import Forgotten
from graphmem.upkeep.importing import Imported, ImportOptions, import_rows
from graphmem.upkeep.merge import merge_entities
from graphmem.upkeep.scope_rows import checksum
from graphmem.upkeep.unmerge import Unmerged, unmerge


class Keeping(Part):
    """Methods that correct, examine and rebuild a memory."""

    def merge(self, names_or_ids: Iterable[str] | str, *, into: str) -> list[Merge]:
        """Merge entities into one, moving their facts, aliases and mentions in a single transaction.

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
        *gone, into = map(self._engine.known_name, (*gone, into))
        self._engine.recorder.write()  # what was just recalled names what moves
        return merge_entities(self._engine.backend, self.scope, gone, into, self._engine.ontology)

    def unmerge(self, merge_id: str) -> Unmerged:
        """Undo a merge: both entities are as they were, and what came in since stays with the one it was said of.

        Raises
        ------
        NotFound
            If the scope has no such merge.
        InvalidInput
            If it was undone before, or a later merge has to be undone first; the message names that one.
        """
        self._engine.recorder.write()
        return unmerge(self._engine.backend, self.scope, merge_id, self._engine.ontology)

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

    def forget(
        self,
        entity: str | None = None,
        *,
        episode: str | None = None,
        session: str | None = None,
        speaker: str | None = None,
        with_episodes: bool = False,
        dry_run: bool = False,
    ) -> Forgotten:
        """Erase somebody or something: rows, vectors, traces, evidence of merges, caches and files.

        A fact goes when all episodes that state it are forgotten. One that others state as well stays without the
        forgotten ones, and without its sentence if that came from there. All of it is one transaction.

        Parameters
        ----------
        entity
            Name or id. Its facts and names go, and values that hung on it alone. Episodes stay, since they are
            somebody's words: the report has the ids of those that it said, that mention it, or in which one of its
            names stands. A name that no entity has (any more) is looked for in texts alone.
        episode
            Id or `external_id`.
        session
            Whose episodes all go.
        speaker
            Whose turns all go.
        with_episodes
            With an entity all of these episodes go, too; of ready-made facts only the lines about it.
        dry_run
            Change nothing; the report tells what would go, with examples.

        Returns
        -------
        Forgotten
            Counts; in `remaining` what stays and why, and in `left` what could not be erased now, if anything.

        Raises
        ------
        NotFound
            If there is no such thing in the scope.
        InvalidInput
            If not exactly one thing is named, or several entities go by the name (then give an id).
        """
        self._engine.recorder.write()  # what was just recalled may name it
        entity, episode, session, speaker = (
            name and self._engine.known_name(name) for name in (entity, episode, session, speaker)
        )
        try:
            done = forget.forget(
                self._engine.backend,
                self._engine.rag.index,
                self.scope,
                self._engine.ontology,
                entity=entity,
                episode=episode,
                session=session,
                speaker=speaker,
                with_episodes=with_episodes,
                dry_run=dry_run,
            )
        finally:
            self._engine.drop_copies(self.scope)
        self._engine.wake(self.scope)
        return done

    def clear(self) -> Forgotten:
        """Erase the whole scope; other scopes of the store stay."""
        self._engine.recorder.write()
        try:
            return forget.clear(self._engine.backend, self._engine.rag.index, self.scope)
        finally:
            self._engine.drop_copies(self.scope)

    def evict(self, *, dry_run: bool = False) -> Evicted:
        """Delete superseded facts and hide entities that are long over or unseen, by the settings; at once.

        By default nothing goes: set `expired_edge_retention_days` or `max_entities`. Then it also runs by itself, in
        the background, every `community_refresh_interval` processed episodes. `stats` counts the deleted facts.

        Parameters
        ----------
        dry_run
            Only tell what would be done.
        """
        self._engine.recorder.write()  # what was just recalled may go
        return evict(self._engine.backend, self.scope, eviction_rule(self._engine.settings), _never, dry_run=dry_run)

    def decay(self) -> int:
        """Let retrieval counts fade up to now, by the settings; return how many facts have one.

        In the background it runs by itself every `community_refresh_interval` processed episodes.
        """
        rule = decay_rule(self._engine.settings)
        done = 0
        if is_interrupted(self._engine.backend, self.scope):
            done = decay(self._engine.backend, self.scope, rule, _never)
        return max(done, decay(self._engine.backend, self.scope, rule, _never))

    def export(
        self, target: Target, *, vectors: bool = True, force: bool = False, on_rows: OnRows | None = None
    ) -> Exported:
        """Write everything that the scope holds as lines of JSON, for another store or for safe keeping.

        Parameters
        ----------
        target
            A path, or an open file of text or bytes. The file of a path is complete or isn't there, and can be read by
            its owner only. An earlier export is replaced; a database never is.
        vectors
            Whether the index is written, too; without it the memory that imports the rows makes its own.
        force
            Whether a file that graphmem did not write may be replaced.
        on_rows
            Called with the rows written so far, now and then.

        Raises
        ------
        InvalidInput
            If the file may not be replaced or can't be written: the message says why.
        """
        self._engine.recorder.write_if_room()  # what was just recalled belongs to it
        return export(self._engine.backend, self.scope, target, vectors=vectors, force=force, on_rows=on_rows)

    def import_(
        self,
        source: Source,
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
            A path, or an open file of text or bytes. What can be read twice is checked before anything is stored.
        rename
            Take in a file of another scope, whose rows become rows of this one.
        vectors
            Whether to import the index of the file, too; otherwise it is rebuilt.
        cut_off
            Take in what there is of a file that is cut off, or of which lines are missing; `complete` tells.
        on_rows
            Called with the rows stored so far after each batch.

        Raises
        ------
        InvalidInput
            If the file is none of ours, of another version or scope, cut off, changed, or has a row that can't be
            taken; the message names the line.
        Conflict
            If the scope holds other rows under the same names, or the store the same ids in another scope.
        """
        self._engine.recorder.write()
        redaction = self._engine.redaction
        options = ImportOptions(
            rename=rename,
            vectors=vectors and redaction is None,  # they may tell of a text what was taken out of it
            cut_off=cut_off,
            require=None if redaction is None else redaction.require_redacted,
        )
        done = import_rows(self._engine.backend, self.scope, source, options, on_rows)
        self._engine.rag.index.reset_cursor(self.scope)
        self._engine.wake(self.scope)
        self._engine.schedule_upkeep(self.scope)
        return done

    def checksum(self) -> str:
        """Return what two memories with the same rows share, in whatever store and scope; its index is left out."""
        return checksum(self._engine.backend, self.scope)

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
        """Rebuild the index that `search` uses, for another embedding model or after damage.

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


def _never() -> bool:
    return False
