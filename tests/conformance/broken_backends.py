"""Stores with one bug each, to try the conformance kit on. All are the store in memory, spoilt."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from graphmem.errors import Conflict
from graphmem.models import (
    AsOf,
    Changes,
    Edge,
    EdgeQuery,
    Entity,
    EntityQuery,
    Episode,
    EpisodeQuery,
    IndexCursor,
    IndexKind,
    IndexStatus,
    JobState,
    Membership,
    MembershipQuery,
    Merge,
    MergeQuery,
    RecallQuery,
    RecallTrace,
    Scope,
    Subgraph,
    utc_now,
)
from graphmem.protocols import GraphBackend
from graphmem_memory import MemoryBackend
from graphmem_memory.tables import Store

T = TypeVar("T")


class Sound(MemoryBackend):
    """No bug: what the others inherit."""

    def __init__(self) -> None:
        super().__init__(Store(), "memory://")

    def find_episode_ids(self, scopes: Sequence[Scope], query: EpisodeQuery) -> list[str]:
        return GraphBackend.find_episode_ids(self, scopes, query)  # by `find_episodes`, which some of the others spoil


class IgnoresKinds(Sound):
    """Returns inferred facts together with stated ones."""

    def find_edges(self, scopes: Sequence[Scope], query: EdgeQuery, **paging: Any) -> list[Edge]:
        return super().find_edges(scopes, replace(query, kinds=None), **paging)


class HidesWhatWasInferred(Sound):
    """Walks over inferred facts as if they had been stated."""

    def expand(self, scopes: Sequence[Scope], seed_ids: Sequence[str], **options: Any) -> Subgraph:
        graph = super().expand(scopes, seed_ids, **options)
        return replace(graph, inferred=graph.inferred & False)


class IndexesWhatWasInferred(Sound):
    """Has inferred facts indexed."""

    def find_unindexed(self, scope: Scope, kind: IndexKind, *, after: str = "", limit: int = 1000) -> list[str]:
        if kind != "fact":
            return super().find_unindexed(scope, kind, after=after, limit=limit)
        active = self.find_edges([scope], EdgeQuery(versions="active"), after=after, limit=limit)
        return [edge.id for edge in active]


def round_trip() -> None:
    """Let other threads run for a moment, as a request to a server does."""
    threading.Event().wait(0.001)


class LeaksAcrossScopes(Sound):
    """Believes that an id is enough to find a row."""

    def find_edges(self, scopes: Sequence[Scope], query: EdgeQuery, **paging: Any) -> list[Edge]:
        return super().find_edges(scopes if query.ids is None else self.scopes(), query, **paging)


class LeaksThroughTheQueue(Sound):
    """Takes "no scope" for "every scope"."""

    def claim_episodes(self, owner: str, *, scopes: Sequence[Scope] | None = None, **lease: Any) -> list[Episode]:
        return super().claim_episodes(owner, scopes=scopes or None, **lease)


class LosesSupersession(Sound):
    """Never ends a fact."""

    def write(self, scope: Scope, changes: Changes) -> None:
        super().write(scope, replace(changes, expiries=()))


class ExpiresTwice(Sound):
    """Lets a second expiry overwrite the first."""

    def write(self, scope: Scope, changes: Changes) -> None:
        with self._store.all_or_nothing():
            for expiry in changes.expiries:
                if (edge := self._store.edges.get(expiry.edge_id)) is not None and edge.scope == scope:
                    self._store.edges.put(edge.id, edge.changed(valid_to=None, expired_at=None))
            super().write(scope, changes)


class ExpiryRewritesHistory(Sound):
    """Sets the beginning of a fact that ends, too."""

    def write(self, scope: Scope, changes: Changes) -> None:
        super().write(scope, changes)
        for expiry in changes.expiries:
            if (edge := self._store.edges.get(expiry.edge_id)) is not None:
                self._store.edges.put(edge.id, edge.changed(valid_from=expiry.valid_to))


class ForgetsWhoEndedAFact(Sound):
    """Stores that a fact ended, but not who stated it."""

    def write(self, scope: Scope, changes: Changes) -> None:
        edges = tuple(edge.changed(ends=()) for edge in changes.edges)
        expiries = tuple(replace(expiry, ends=()) for expiry in changes.expiries)
        super().write(scope, replace(changes, edges=edges, expiries=expiries))


class ForgetsStatedBeginnings(Sound):
    """Stores when a fact began, but not who stated it."""

    def write(self, scope: Scope, changes: Changes) -> None:
        edges = tuple(edge.changed(beginnings=()) for edge in changes.edges)
        super().write(scope, replace(changes, edges=edges))


class FindsSupersededFactsOnly(Sound):
    """Finds what facts ended, but not what episodes ended."""

    def find_edges(self, scopes: Sequence[Scope], query: EdgeQuery, **paging: Any) -> list[Edge]:
        found = super().find_edges(scopes, query, **paging)
        return [edge for edge in found if query.ended_by is None or edge.superseded_by in query.ended_by]


class CorroborationRewritesHistory(Sound):
    """Takes a fact that is stated again as recorded only now."""

    def write(self, scope: Scope, changes: Changes) -> None:
        super().write(scope, changes)
        for corroboration in changes.corroborations:
            if (edge := self._store.edges.get(corroboration.edge_id)) is not None:
                self._store.edges.put(edge.id, edge.changed(recorded_at=utc_now()))


class ForgetsAHop(Sound):
    """Walks one hop less than it is asked, but at least one."""

    def expand(self, scopes: Sequence[Scope], seed_ids: Sequence[str], *, hops: int, **options: Any) -> Subgraph:
        return super().expand(scopes, seed_ids, hops=hops - 1 if hops > 1 else hops, **options)


class IgnoresLimits(Sound):
    """Returns all that matches where the newest are asked for."""

    def find_edges(self, scopes: Sequence[Scope], query: EdgeQuery, *, limit: int = 1000, **paging: Any) -> list[Edge]:
        return super().find_edges(scopes, query, limit=10**9 if paging.get("newest_first") else limit, **paging)


class IgnoresTheFrontierLimit(Sound):
    """Enters every node that it reaches."""

    def expand(
        self, scopes: Sequence[Scope], seed_ids: Sequence[str], *, limits: Any = None, **options: Any
    ) -> Subgraph:
        unlimited = None if limits is None else replace(limits, max_frontier=10**9)
        return super().expand(scopes, seed_ids, limits=unlimited, **options)


class AliasInDisplayCase(Sound):
    """Files an entity under the name that people see instead of the normalized one."""

    def write(self, scope: Scope, changes: Changes) -> None:
        shown = {e.canonical_name: e.name for e in changes.entities}
        aliases = tuple(a.model_copy(update={"alias": shown.get(a.alias, a.alias)}) for a in changes.aliases)
        super().write(scope, replace(changes, aliases=aliases))


class LosesWritesOfThreads(Sound):
    """Keeps nobody out of a transaction."""

    def atomic(self, work: Callable[[], T]) -> T:
        return work()

    def find_entities(self, scopes: Sequence[Scope], query: EntityQuery, **paging: Any) -> list[Entity]:
        found = super().find_entities(scopes, query, **paging)
        round_trip()
        return found


class SkipsAtPageBoundaries(Sound):
    """Drops the first row behind each page."""

    def find_edges(
        self, scopes: Sequence[Scope], query: EdgeQuery, *, after: str = "", limit: int = 1000, **order: Any
    ) -> list[Edge]:
        rows = super().find_edges(scopes, query, after=after, limit=limit + 1, **order)
        return rows[1:] if after else rows[:limit]


class IgnoresWhatWasKnown(Sound):
    """Answers about a moment with all that was learned since."""

    def find_edges(self, scopes: Sequence[Scope], query: EdgeQuery, **paging: Any) -> list[Edge]:
        if query.as_of is not None:
            query = replace(query, as_of=AsOf(valid=query.as_of.valid))
        return super().find_edges(scopes, query, **paging)


class CountsInTwoSteps(Sound):
    """Reads a count, and writes it back when others may have counted."""

    def record_retrievals(self, scopes: Sequence[Scope], edge_ids: Sequence[str], at: datetime) -> None:
        edges = list(self.get_edges(scopes, edge_ids).values())
        round_trip()
        for edge in edges:
            count = edge.retrieval_count + 1
            super().record_retrievals(scopes, [edge.id], at)
            with self._store.lock:
                self._store.edges.put(edge.id, edge.changed(retrieval_count=count, last_retrieved_at=at))


class WritesInParts(Sound):
    """Stores what it can of a write that is refused."""

    def write(self, scope: Scope, changes: Changes) -> None:
        for part in fields(changes):
            super().write(scope, Changes(**{part.name: getattr(changes, part.name)}))


class UndoesNothing(Sound):
    """Keeps what a failed transaction wrote."""

    def atomic(self, work: Callable[[], T]) -> T:
        with self._store.lock:
            return work()


class GivesAnEpisodeToTwo(Sound):
    """Looks for free episodes and takes them in two steps."""

    def claim_episodes(self, owner: str, **lease: Any) -> list[Episode]:
        with self._store.lock:
            taken = super().claim_episodes(owner, **lease)
            for episode in taken:
                self._store.claims.put(episode.id, None)
        round_trip()
        with self._store.lock:
            super().claim_episodes(owner, **lease)
        return taken


class IgnoresOtherProcesses(Sound):
    """Claims episodes of a scope that another process extracts."""

    def claim_episodes(self, owner: str, *, own: str | None = None, **lease: Any) -> list[Episode]:
        return super().claim_episodes(owner, **lease)


class SwallowsConflicts(Sound):
    """Says nothing when a unique key is taken."""

    def write(self, scope: Scope, changes: Changes) -> None:
        try:
            super().write(scope, changes)
        except Conflict:
            return


class TakesTextForAPattern(Sound):
    """Hands the text to a LIKE without escaping it."""

    def find_edges(self, scopes: Sequence[Scope], query: EdgeQuery, **paging: Any) -> list[Edge]:
        if query.text == "%":
            query = replace(query, text="")
        return super().find_edges(scopes, query, **paging)


class RoundsTimes(Sound):
    """Keeps times to the millisecond."""

    def write(self, scope: Scope, changes: Changes) -> None:
        def rounded(edge: Edge) -> Edge:
            moment = edge.valid_from
            return edge.changed(valid_from=moment.replace(microsecond=moment.microsecond // 1000 * 1000))

        super().write(scope, replace(changes, edges=tuple(rounded(e) for e in changes.edges)))


class StoresEpisodesAgain(Sound):
    """Doesn't know an external id again."""

    def add_episodes(self, scope: Scope, episodes: Sequence[Episode]) -> list[tuple[str, bool]]:
        return super().add_episodes(scope, [e.changed(external_id=None) for e in episodes])


class LosesAttachments(Sound):
    """Stores the text of an episode without what is attached to it."""

    def add_episodes(self, scope: Scope, episodes: Sequence[Episode]) -> list[tuple[str, bool]]:
        return super().add_episodes(scope, [episode.changed(attachments=()) for episode in episodes])


class ForgetsFormerMembers(Sound):
    """Answers about a moment with the members of today."""

    def find_memberships(self, scopes: Sequence[Scope], query: MembershipQuery, **paging: Any) -> list[Membership]:
        return super().find_memberships(scopes, replace(query, as_of=None), **paging)


class LeaksTraces(Sound):
    """Believes that whoever knows an entity may see every trace of it."""

    def find_recalls(self, scopes: Sequence[Scope], query: RecallQuery, **paging: Any) -> list[RecallTrace]:
        return super().find_recalls(scopes if query.entity_ids is None else self.scopes(), query, **paging)


class DropsMembersOfAChangedCommunity(Sound):
    """Takes a community that is written again for a new one."""

    def write(self, scope: Scope, changes: Changes) -> None:
        with self._store.all_or_nothing():
            table = self._store.memberships
            for key in table.keys_of("community", [community.id for community in changes.communities]):
                table.put(key, None)
            super().write(scope, changes)


class LeavesMentionsOfForgottenEpisodes(Sound):
    """Removes an episode, and nothing that hangs on it."""

    def write(self, scope: Scope, changes: Changes) -> None:
        gone = [removal.id for removal in changes.removals if removal.kind == "episode"]
        with self._store.all_or_nothing():
            left = [row for row in self._store.mentions.read([scope]) if row.value.episode_id in gone]
            super().write(scope, changes)
            for row in left:
                self._store.mentions.put((row.value.episode_id, row.value.entity_id), row)


class ClearsWithoutAGeneration(Sound):
    """Begins the index of a cleared scope where it began before."""

    def clear(self, scope: Scope) -> None:
        super().clear(scope)
        with self._store.lock:
            self._store.index_states.put(scope.key, None)


class ClearsTooMuch(Sound):
    """Takes the projects of a domain for a part of it."""

    def clear(self, scope: Scope) -> None:
        for other in self.scopes():
            if other.domain == scope.domain:
                super().clear(other)


class FadesWhatIsInUse(Sound):
    """Lowers every count, whenever it was retrieved."""

    def decay_retrievals(self, scope: Scope, *, idle_since: datetime, now: datetime, **rest: Any) -> tuple[int, str]:
        return super().decay_retrievals(scope, idle_since=now, now=now, **rest)


class FadesTwice(Sound):
    """Counts the days from the last retrieval, however often the count was lowered since."""

    def decay_retrievals(self, scope: Scope, *, since: datetime | None, **rest: Any) -> tuple[int, str]:
        return super().decay_retrievals(scope, since=None, **rest)


class HidesWhatFactsAreAbout(Sound):
    """Takes an entity without facts of its own for idle, though others are about it."""

    def find_idle(self, scope: Scope, *, before: datetime, now: datetime, limit: int = 1000) -> list[str]:
        sources = {edge.source_id for edge in self._store.edges.read([scope]) if edge.is_active}
        people = self.find_entities([scope], EntityQuery())
        idle = [e.id for e in people if e.id not in sources and e.last_seen_at <= before and e.recorded_at <= before]
        return idle[:limit]


class LeaksMerges(Sound):
    """Believes that whoever knows an entity may see every merge of it."""

    def find_merges(self, scopes: Sequence[Scope], query: MergeQuery, **paging: Any) -> list[Merge]:
        return super().find_merges(scopes if query.entity_ids is None else self.scopes(), query, **paging)


class JobStatesOfOneScopeForAll(Sound):
    """Keeps one job state for each job."""

    def find_job_states(self, scope: Scope) -> list[JobState]:
        return [job_state for s in (scope, *self.scopes()) for job_state in MemoryBackend.find_job_states(self, s)]


class ReadsOnInSnapshots(Sound):
    """Lets what others write meanwhile into a snapshot."""

    def snapshot(self, work: Callable[[GraphBackend], T]) -> T:
        return work(self)


class NeverEndsEpisodes(Sound):
    """Takes no note of the end of an episode."""

    def write(self, scope: Scope, changes: Changes) -> None:
        super().write(scope, replace(changes, episode_ends=()))


class NeverExpires(Sound):
    """Takes no note of the expiry of an episode that is stored."""

    def write(self, scope: Scope, changes: Changes) -> None:
        super().write(scope, replace(changes, episode_expiries=()))


class FindsWhatIsOver(Sound):
    """Finds the episodes that have ended or expired, too."""

    def find_episodes(self, scopes: Sequence[Scope], query: EpisodeQuery, **paging: Any) -> list[Episode]:
        return super().find_episodes(scopes, replace(query, live_at=None), **paging)


class BringsBackWhatHasExpired(Sound):
    """Answers about a moment with what had not expired then."""

    def find_episodes(self, scopes: Sequence[Scope], query: EpisodeQuery, **paging: Any) -> list[Episode]:
        if query.live_at is not None and query.as_of is not None:
            query = replace(query, live_at=query.as_of.valid)
        return super().find_episodes(scopes, query, **paging)


class SweepsTooMuch(Sound):
    """Takes an episode that is replaced for one that has expired."""

    def find_episodes(self, scopes: Sequence[Scope], query: EpisodeQuery, **paging: Any) -> list[Episode]:
        if query.expired_by is not None:
            query = replace(query, expired_by=None, hidden_at=query.expired_by)
        return super().find_episodes(scopes, query, **paging)


class DeniesEnds(Sound):
    """Says of no scope that its episodes end or expire, so that a search doesn't look."""

    def index_status(self, cursors: Sequence[IndexCursor]) -> list[IndexStatus]:
        return [replace(status, limited=False) for status in super().index_status(cursors)]


class DropsWhatHasNoValue(Sound):
    """Lets no episode without a key meet a condition on it, as a comparison with NULL does."""

    def find_episodes(self, scopes: Sequence[Scope], query: EpisodeQuery, **paging: Any) -> list[Episode]:
        if query.filters is not None:
            conditions = {key: {"$exists": True, **wanted} for key, wanted in query.filters.metadata.items()}
            query = replace(query, filters=query.filters.changed(metadata=conditions))
        return super().find_episodes(scopes, query, **paging)


class TakesPrefixesForPatterns(Sound):
    """Looks for the beginning of a session with LIKE, for which `_` and `%` stand for anything and case is equal."""

    def find_episodes(self, scopes: Sequence[Scope], query: EpisodeQuery, **paging: Any) -> list[Episode]:
        if query.filters is None or query.filters.session_prefix is None:
            return super().find_episodes(scopes, query, **paging)
        parts = {"_": ".", "%": ".*"}
        pattern = "".join(parts.get(letter, re.escape(letter)) for letter in query.filters.session_prefix)
        query = replace(query, filters=query.filters.changed(session_prefix=None))
        found = super().find_episodes(scopes, query, **paging)
        return [e for e in found if e.session_id is not None and re.match(pattern, e.session_id, re.I | re.S)]


class IgnoresTheMark(Sound):
    """Keeps writing to a store whose migration it doesn't know of."""

    @contextmanager
    def _writing(self) -> Generator[None, None, None]:
        with self._store.all_or_nothing():
            yield


class KeepsUndoneJobStates(Sound):
    """Leaves out job states where it undoes a transaction."""

    def __init__(self) -> None:
        super().__init__()
        self._store.job_states._journal = []  # pyright: ignore[reportPrivateUsage]


class ReleasesByPrefix(Sound):
    """Looks for the claims of an owner by the beginning of its name."""

    def release_claims(self, owners: Sequence[str]) -> list[Episode]:
        held = {name for name in self.claim_owners(datetime.min.replace(tzinfo=UTC)) if name.startswith(tuple(owners))}
        return super().release_claims(sorted(held))


class LeavesMovedFacts(Sound):
    """Finds a fact that was moved to another entity from the former one, too."""

    def write(self, scope: Scope, changes: Changes) -> None:
        before = self.get_edges([scope], [edge.id for edge in changes.edges])
        super().write(scope, changes)
        for edge in before.values():
            found = self._store.edges._indexed  # pyright: ignore[reportPrivateUsage]
            found.setdefault(("target", edge.target_id), set()).add(edge.id)


class OrdersByBeginningAlone(Sound):
    """Orders the newest facts by their beginning and id, whenever they were recorded."""

    def find_edges(self, scopes: Sequence[Scope], query: EdgeQuery, **paging: Any) -> list[Edge]:
        if not paging.get("newest_first"):
            return super().find_edges(scopes, query, **paging)
        found = super().find_edges(scopes, query, limit=10**9)
        return sorted(found, key=lambda edge: (edge.valid_from, edge.id), reverse=True)[: paging.get("limit", 1000)]
