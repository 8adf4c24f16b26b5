"""Merge of imported rows with the rows of a scope: of an existing row, only what the store lacks is taken.

Changes in the store since the file was written stay: ended facts, merges and unmerges, later times of last mention.
Episodes that wait for extraction stay out of the queue until the whole file is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from graphmem.ingest.supersession.rules import beginnings_of
from graphmem.models import (
    Alias,
    Changes,
    Community,
    CommunityQuery,
    Edge,
    EdgeQuery,
    Entity,
    Episode,
    EpisodeEnd,
    EpisodeExpiry,
    IndexEntry,
    IndexKind,
    JobState,
    Membership,
    MembershipQuery,
    Mention,
    Merge,
    MergeQuery,
    ProcessingResult,
    RecallTrace,
    Scope,
    is_retracted,
    utc_now,
)
from graphmem.protocols import GraphBackend

R = TypeVar("R", Entity, Edge, Community, Merge)

_HELD_BACK = "held back until the import of its memory is done"
_DEFERRAL = timedelta(days=1)


class ImportMerge:
    """Merge of the rows of a file into a scope that isn't empty, batch by batch in the order of the file.

    Parameters
    ----------
    backend, scope
        Store and scope to import into.
    separated
        Ids of the entities whose merges are all undone in the file.

    Attributes
    ----------
    retracted
        Ids of the facts of the file that are retracted, there or in the store.
    new_merges
        Merges of the file, by id, whose merged entity is still in the store.
    """

    def __init__(self, backend: GraphBackend, scope: Scope, separated: Collection[str]) -> None:
        self._backend = backend
        self._scope = scope
        self._separated = separated
        self.retracted: set[str] = set()
        self.new_merges: dict[str, Merge] = {}
        ledger = list(backend.all_merges([scope], MergeQuery(undone=True)))
        merges = [merge for merge in ledger if merge.undone_at is None]
        undone = [merge for merge in ledger if merge.undone_at is not None]
        there = backend.get_entities([scope], [merge.merged.id for merge in merges]) if merges else {}
        self._into = {
            m.merged.id: m.kept_id for m in merges if m.merged.id not in there and m.merged.id not in separated
        }
        self._unmerged_mentions = {
            (merge.kept_id, mention.episode_id)
            for merge in undone
            for mention in merge.mentions
            if mention.episode_id not in merge.shared
        }
        self._folded = {f.edge.id for m in merges if m.merged.id in self._into for f in m.folded}

    def changes(self, parts: dict[str, list[Any]]) -> dict[str, tuple[Any, ...]]:
        """Return the rows to write, by field of `Changes`."""
        mergers: dict[str, Callable[[list[Any]], Iterable[Any]]] = {
            "entities": self._entities,
            "aliases": self._aliases,
            "edges": self._edges,
            "mentions": self._mentions,
            "communities": self._communities,
            "memberships": self._memberships,
            "recalls": self._recalls,
            "merges": self._merges,
            "index": self._index,
            "job_states": self._job_states,
        }
        changes = {name: tuple(mergers[name](rows)) for name, rows in parts.items()}
        return {name: rows for name, rows in changes.items() if rows}

    def results(self, episodes: Iterable[Episode], there: dict[str, Episode]) -> tuple[ProcessingResult, ...]:
        """Return the processing results of existing episodes that are further processed in the file.

        None of them returns to the queue.
        """
        further = (
            e
            for e in episodes
            if (held := there.get(e.id)) is not None
            and held.processed_at is None
            and (e.processed_at is not None or e.attempts > held.attempts)
        )
        return tuple(result_of(e) for e in further)

    def limits(self, episodes: Iterable[Episode], there: dict[str, Episode]) -> Changes:
        """Return ends that existing episodes lack, and expiries that they lack or that are later in the file."""
        ends: list[EpisodeEnd] = []
        expiries: list[EpisodeExpiry] = []
        for row in episodes:
            if (held := there.get(row.id)) is None:
                continue
            if row.ended_at is not None and held.ended_at is None:
                ends.append(EpisodeEnd(row.id, row.ended_at))
            if row.expires_at is not None and (held.expires_at is None or held.expires_at < row.expires_at):
                expiries.append(EpisodeExpiry(row.id, row.expires_at))
        return Changes(episode_ends=tuple(ends), episode_expiries=tuple(expiries))

    def _holder(self, entity_id: str) -> str:
        """Return the id of the entity that holds the data of this one in the store; merges may have moved it."""
        seen: set[str] = set()
        while entity_id in self._into and entity_id not in seen:
            seen.add(entity_id)
            entity_id = self._into[entity_id]
        return entity_id

    # Entities and their names ---------------------------------------------------------------------

    def _entities(self, rows: Sequence[Entity]) -> Iterable[Entity]:
        rows = [row for row in rows if row.id not in self._into]
        return _joined(rows, self._backend.get_entities([self._scope], [row.id for row in rows]), _entity)

    def _aliases(self, rows: Sequence[Alias]) -> Iterable[Alias]:
        known = self._backend.resolve_names(self._scope, list(dict.fromkeys(row.alias for row in rows)))
        ids = list(dict.fromkeys(entity.id for _, entity in known))
        aliases = self._backend.find_aliases([self._scope], ids) if ids else []
        held = {(alias.alias, alias.entity_type) for alias in aliases}
        for row in rows:
            if row.entity_id in self._separated or (row.alias, row.entity_type) not in held:
                yield row.changed(entity_id=self._holder(row.entity_id))

    def _mentions(self, rows: Sequence[Mention]) -> Iterable[Mention]:
        kept = (row for row in rows if (row.entity_id, row.episode_id) not in self._unmerged_mentions)
        return (row.changed(entity_id=self._holder(row.entity_id)) for row in kept)

    # Facts ----------------------------------------------------------------------------------------

    def _edges(self, rows: Sequence[Edge]) -> Iterable[Edge]:
        here = self._without_known(row for row in map(self._placed, rows) if row is not None)
        return _joined(here, self._backend.get_edges([self._scope], [row.id for row in here]), self._edge)

    def _placed(self, row: Edge) -> Edge | None:
        """Return a fact re-pointed to the entities of the store; None if a merge folded it into another fact."""
        source, target = self._holder(row.source_id), self._holder(row.target_id)
        if row.id in self._folded or source == target:
            return None
        return row.changed(source_id=source, target_id=target)

    def _without_known(self, rows: Iterable[Edge]) -> list[Edge]:
        """Return the rows without inferred facts that the store has under another id, stated or inferred."""
        found = list(rows)
        keys = tuple({row.key for row in found if row.is_inferred and row.is_active})
        if not keys:
            return found
        active = self._backend.all_edges([self._scope], EdgeQuery(keys=keys, versions="active"))
        held = {edge.key: edge.id for edge in active}
        return [row for row in found if not row.is_inferred or held.get(row.key, row.id) == row.id]

    def _edge(self, ours: Edge, file: Edge) -> Edge:
        if is_retracted(ours) or is_retracted(file):
            self.retracted.add(ours.id)
        further = file.stated_by([i for i in file.episode_ids if i not in ours.episode_ids])
        joined = ours.changed(
            confidence=max(ours.confidence, file.confidence),
            episode_ids=tuple(dict.fromkeys((*ours.episode_ids, *file.episode_ids))),
            beginnings=beginnings_of(ours, further),
        )
        if not file.is_active and (ours.is_active or _learned_later(file, ours)):
            joined = joined.changed(**{name: getattr(file, name) for name in _ENDS})
        if not joined.is_active:
            joined = joined.changed(ends=tuple(dict.fromkeys((*ours.ends, *file.ends))))
        if file.last_retrieved_at is not None and (
            ours.last_retrieved_at is None or file.last_retrieved_at > ours.last_retrieved_at
        ):
            joined = joined.changed(retrieval_count=file.retrieval_count, last_retrieved_at=file.last_retrieved_at)
        if {file.source_id, file.target_id} & set(self._separated):
            joined = joined.changed(source_id=file.source_id, target_id=file.target_id)
        return joined

    # Communities, traces, the ledger --------------------------------------------------------------

    def _communities(self, rows: Sequence[Community]) -> Iterable[Community]:
        query = CommunityQuery(ids=tuple(row.id for row in rows), ended=True)
        return _joined(rows, {row.id: row for row in self._backend.all_communities([self._scope], query)}, _community)

    def _memberships(self, rows: Sequence[Membership]) -> Iterable[Membership]:
        ids = tuple(dict.fromkeys(row.community_id for row in rows))
        query = MembershipQuery(community_ids=ids, ended=True)
        there = {row.key: row for row in self._backend.all_memberships([self._scope], query)}
        for row in rows:
            held = there.get(row.key)
            if row.entity_id not in self._into and (held is None or (held.until is None and row.until is not None)):
                yield row

    def _recalls(self, rows: Sequence[RecallTrace]) -> Iterable[RecallTrace]:
        if not self._into:
            return rows
        return [
            row.changed(
                seeds=tuple(seed.changed(entity_id=self._holder(seed.entity_id)) for seed in row.seeds),
                facts=tuple(
                    fact.changed(entity_id=self._holder(fact.entity_id))
                    for fact in row.facts
                    if fact.edge_id not in self._folded
                ),
            )
            for row in rows
        ]

    def _merges(self, rows: Sequence[Merge]) -> Iterable[Merge]:
        query = MergeQuery(ids=tuple(row.id for row in rows), undone=True)
        there = {row.id: row for row in self._backend.all_merges([self._scope], query)}
        entities = self._backend.get_entities([self._scope], [row.merged.id for row in rows])
        new = {r.id: r for r in rows if r.id not in there and r.undone_at is None and r.merged.id in entities}
        self.new_merges.update(new)

        def joined(ours: Merge, file: Merge) -> Merge:
            there_again = file.merged.id in entities or file.merged.id in self._separated
            if ours.undone_at is not None or not there_again:
                return ours
            return ours.changed(undone_at=file.undone_at)

        return _joined([row for row in rows if row.id not in new], there, joined)

    def _index(self, rows: Sequence[IndexEntry]) -> Iterable[IndexEntry]:
        of_kind: dict[IndexKind, list[str]] = {}
        for row in rows:
            of_kind.setdefault(row.kind, []).append(row.key)
        held = {
            (entry.kind, entry.key)
            for kind, keys in of_kind.items()
            for entry in self._backend.find_index(self._scope, kind, keys)
            if entry.complete
        }
        gone = self._into.keys() | self._folded
        return (row for row in rows if (row.kind, row.key) not in held and row.key not in gone)

    def _job_states(self, rows: Sequence[JobState]) -> Iterable[JobState]:
        held = {state.job for state in self._backend.find_job_states(self._scope)}
        return (row for row in rows if row.job not in held)


_ENDS = ("valid_from", "valid_to", "expired_at", "superseded_by", "end_reason", "prior_valid_to")


def _learned_later(edge: Edge, other: Edge) -> bool:
    """Return whether the end of a fact was learned later than that of its other version."""
    return edge.expired_at is not None and (other.expired_at is None or edge.expired_at > other.expired_at)


class DeferredEpisodes:
    """Waiting episodes of a file that are kept out of the queue until its last row is stored.

    A worker that processed one before the entities of the file are stored would create other entities with the same
    names, and the rest of the file would conflict with them. Therefore these episodes are stored with a retry time one
    day ahead and an `error` that says so; when all rows are stored, they get the error and retry time of the file.
    After an import that was killed, the next import of this file, or of a newer one, holds them back again. Without
    one, the queue takes them after the day: nothing is lost, but rows of the file with the same names then conflict.
    """

    def __init__(self) -> None:
        self._until = utc_now() + _DEFERRAL
        self._results: dict[str, ProcessingResult] = {}

    def take(self, episodes: Iterable[Episode], there: Mapping[str, Episode]) -> dict[str, Episode]:
        """Return the episodes to hold back, as they are to be stored, by id; `there` are the existing episodes.

        Episodes that already wait in the store and aren't held back by an import stay in the queue. A repeated call
        with the same episodes, as in a retried transaction, changes nothing.
        """
        held: dict[str, Episode] = {}
        for episode in episodes:
            ours = there.get(episode.id)
            if self._is_due(episode) and (ours is None or ours.error == _HELD_BACK):
                self._results[episode.id] = result_of(episode)
                held[episode.id] = episode.changed(error=_HELD_BACK, retry_at=self._until)
        return held

    def ids(self) -> Iterator[str]:
        """Return the ids of the episodes that were held back."""
        return iter(self._results)

    def results(self, there: Mapping[str, Episode]) -> list[ProcessingResult]:
        """Return the processing results of the file for episodes that are still held back, which releases them."""
        return [self._results[episode.id] for episode in there.values() if episode.error == _HELD_BACK]

    def _is_due(self, episode: Episode) -> bool:
        """Return whether the queue would take an episode before the hold ends."""
        if episode.processed_at is not None:
            return False
        return episode.error is None if episode.retry_at is None else episode.retry_at < self._until


def result_of(episode: Episode) -> ProcessingResult:
    """Return the processing state of an episode as a result to write."""
    return ProcessingResult(
        episode.id,
        processed_at=episode.processed_at,
        error=episode.error,
        attempts=episode.attempts,
        retry_at=episode.retry_at,
    )


def _joined(rows: Sequence[R], there: dict[str, R], join: Callable[[R, R], R]) -> Iterable[R]:
    """Yield new rows unchanged, and existing rows that the merge with the file changes."""
    for row in rows:
        ours = there.get(row.id)
        if ours is None:
            yield row
        elif (joined := join(ours, row)) != ours:
            yield joined


def _entity(ours: Entity, file: Entity) -> Entity:
    """Return the merge of two versions of an entity; the one last seen later prevails.

    If both were last seen at the same time, the entity is archived if either version is.
    """
    later = file.last_seen_at > ours.last_seen_at
    newer, older = (file, ours) if later else (ours, file)
    same = file.last_seen_at == ours.last_seen_at
    return newer.changed(
        recorded_at=ours.recorded_at,
        confidence=max(ours.confidence, file.confidence),
        first_seen_at=min(ours.first_seen_at, file.first_seen_at),
        access_count=max(ours.access_count, file.access_count),
        archived_at=newer.archived_at or (older.archived_at if same else None),
        valid_from=newer.valid_from or older.valid_from,
        valid_to=newer.valid_to or older.valid_to,
    )


def _community(ours: Community, file: Community) -> Community:
    newer = file if file.updated_at > ours.updated_at else ours
    return newer.changed(ended_at=ours.ended_at or newer.ended_at)
