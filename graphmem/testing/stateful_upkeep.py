"""State machines with random operations on communities, recall traces, merges, the index, job states and removals."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from graphmem.models import (
    Changes,
    Community,
    CommunityQuery,
    EpisodeRedaction,
    IndexKind,
    JobState,
    Membership,
    MembershipQuery,
    MergeQuery,
    RecallQuery,
    RecallTrace,
    Removal,
    RemovalKind,
    Scope,
)
from graphmem.protocols import GraphBackend
from graphmem.testing.base import StoreTests
from graphmem.testing.merges import mention, merge, merge_id
from graphmem.testing.random_rows import (
    A_SCOPE,
    AS_OF,
    COMMUNITY_FIELDS,
    LIMIT,
    MEMBER,
    MEMBERSHIP_FIELDS,
    MOSTLY_OWN,
    NUMBER,
    OWN_OR_STRANGE,
    PER_SCOPE,
    RECALL_FIELDS,
    SCOPES,
    SOME_SCOPES,
    TIME,
    PairOfStores,
    local,
    moment,
    reach,
    run_machine,
)
from graphmem.testing.rows import (
    all_scopes,
    community,
    community_id,
    day,
    edge,
    edge_id,
    entity_id,
    episode_id,
    membership,
    put_communities,
    put_episodes,
    put_graph,
    put_recalls,
    recall_id,
    recall_trace,
    traced_episode,
)
from graphmem.testing.upkeep import index_entry


class GroupMachine(PairOfStores):
    """State machine for communities, memberships and recall traces."""

    def compare(self) -> None:
        """Compare the rows that these operations write; other rows don't change."""
        for scope in all_scopes():
            self.read(partial(_groups, scope=scope))

    @initialize()
    def fill(self) -> None:
        """Start with entities, facts, an episode and communities in each scope."""
        for number, scope in enumerate(all_scopes(), 1):
            self.write(partial(_fill_groups, scope=scope, number=number))

    @rule(
        scope=A_SCOPE,
        n=NUMBER,
        level=st.integers(0, 2),
        name=st.sampled_from(("", "Makers", "Zürich & others")),
        parent=st.none() | OWN_OR_STRANGE,
        found=st.integers(0, 3),
        ended=st.none() | st.integers(3, 8),
    )
    def put_community(
        self, scope: Scope, n: int, level: int, name: str, parent: int | None, found: int, ended: int | None
    ) -> None:
        """Insert or replace a community; the parent may be missing or of another scope."""
        number = local(scope, n)
        above = None if parent is None or reach(scope, parent) == number else community_id(reach(scope, parent))
        row = community(
            number,
            scope,
            level=level,
            name=name,
            parent_id=above,
            created_at=day(found),
            updated_at=day(found),
            ended_at=None if ended is None else day(ended),
        )
        self.write(lambda s: s.write(scope, Changes(communities=(row,))))

    @rule(scope=A_SCOPE, members=st.lists(MEMBER, min_size=1, max_size=4))
    def put_members(self, scope: Scope, members: list[tuple[int, int, int, int | None]]) -> None:
        """Begin and end memberships; some rows reference missing rows."""
        rows = tuple(membership(reach(scope, of), reach(scope, in_), since, until) for of, in_, since, until in members)
        self.write(lambda s: s.write(scope, Changes(memberships=rows)))

    @rule(
        scope=A_SCOPE,
        n=NUMBER,
        seeds=st.lists(MOSTLY_OWN, max_size=2),
        facts=st.lists(st.tuples(MOSTLY_OWN, MOSTLY_OWN), max_size=2),
        episodes=st.lists(st.sampled_from((0, 0, 0, 0, 1)), max_size=1),
        as_of=AS_OF,
    )
    def put_recall(
        self,
        scope: Scope,
        n: int,
        seeds: list[int],
        facts: list[tuple[int, int]],
        episodes: list[int],
        as_of: tuple[int, int] | None,
    ) -> None:
        """Write a trace once; some traces reference missing rows."""
        trace = recall_trace(
            local(scope, n),
            scope,
            seeds=[reach(scope, seed) for seed in seeds],
            facts=[(reach(scope, fact), reach(scope, at)) for fact, at in facts],
            episodes=tuple(traced_episode(1 + (all_scopes().index(scope) + strange) % SCOPES) for strange in episodes),
            as_of=moment(as_of),
        )
        self.write(lambda s: s.write(scope, Changes(recalls=(trace,))))

    @rule(reads=st.lists(st.tuples(SOME_SCOPES, COMMUNITY_FIELDS, AS_OF, st.booleans(), LIMIT), min_size=1, max_size=6))
    def read_communities(
        self, reads: list[tuple[list[Scope], dict[str, Any], tuple[int, int] | None, bool, int]]
    ) -> None:
        """Read all pages of queries for communities."""
        for scopes, fields, as_of, ended, chunk in reads:
            query = CommunityQuery(as_of=moment(as_of), ended=ended, **fields)
            self.read(partial(_communities, scopes=scopes, query=query, chunk=chunk))

    @rule(
        reads=st.lists(st.tuples(SOME_SCOPES, MEMBERSHIP_FIELDS, AS_OF, st.booleans(), LIMIT), min_size=1, max_size=6)
    )
    def read_memberships(
        self, reads: list[tuple[list[Scope], dict[str, Any], tuple[int, int] | None, bool, int]]
    ) -> None:
        """Read all pages of queries for memberships."""
        for scopes, fields, as_of, ended, chunk in reads:
            query = MembershipQuery(as_of=moment(as_of), ended=ended, **fields)
            self.read(partial(_memberships, scopes=scopes, query=query, chunk=chunk))

    @rule(reads=st.lists(st.tuples(SOME_SCOPES, RECALL_FIELDS, LIMIT, st.booleans()), min_size=1, max_size=6))
    def read_recalls(self, reads: list[tuple[list[Scope], dict[str, Any], int, bool]]) -> None:
        """Read pages of traces."""
        for scopes, fields, limit, newest_first in reads:
            query = RecallQuery(**fields)
            self.read(partial(_recalls, scopes=scopes, query=query, limit=limit, newest_first=newest_first))


class StatefulGroupTests(StoreTests):
    """Random operations on communities and recall traces agree with the memory backend."""

    def test_random_operations_on_communities_and_recalls_agree_with_the_memory_backend(
        self, store: GraphBackend, tmp_path: Path
    ) -> None:
        """Run `GroupMachine`."""
        run_machine(GroupMachine, self, store, tmp_path)


def _fill_groups(store: GraphBackend, scope: Scope, number: int) -> None:
    numbers = [local(scope, n) for n in range(PER_SCOPE)]
    put_graph(store, *(edge(one, one, other, scope) for one, other in pairwise(numbers)))
    put_episodes(store, number, scope=scope)
    first, second, third, *_ = numbers
    put_communities(
        store,
        *(community(n, scope) for n in (first, second, third)),
        members=[membership(first, first), membership(second, first), membership(third, second, 2)],
    )


def _groups(store: GraphBackend, scope: Scope) -> tuple[object, ...]:
    return (
        store.find_communities([scope], CommunityQuery(ended=True)),
        store.find_memberships([scope], MembershipQuery(ended=True)),
        store.find_recalls([scope], RecallQuery()),
        store.stats(scope),
    )


def _communities(store: GraphBackend, scopes: list[Scope], query: CommunityQuery, chunk: int) -> list[Community]:
    return list(store.all_communities(scopes, query, chunk=chunk))


def _memberships(store: GraphBackend, scopes: list[Scope], query: MembershipQuery, chunk: int) -> list[Membership]:
    return list(store.all_memberships(scopes, query, chunk=chunk))


def _recalls(
    store: GraphBackend, scopes: list[Scope], query: RecallQuery, limit: int, newest_first: bool
) -> list[RecallTrace]:
    return store.find_recalls(scopes, query, limit=limit, newest_first=newest_first)


_IDS = {
    "entity": entity_id,
    "edge": edge_id,
    "episode": episode_id,
    "community": community_id,
    "recall": recall_id,
    "merge": merge_id,
}
_KINDS: tuple[RemovalKind, ...] = get_args(RemovalKind)
_INDEXED: tuple[IndexKind, ...] = get_args(IndexKind)


class UpkeepMachine(PairOfStores):
    """State machine for removals of every kind, clearing and refilling of scopes, and decay."""

    @initialize()
    def fill_all(self) -> None:
        """Start with rows of every kind in each scope."""
        for scope in all_scopes():
            self.fill(scope)

    @rule(scope=A_SCOPE)
    def fill(self, scope: Scope) -> None:
        """Fill a scope again, in any state."""
        self.write(partial(_fill, scope=scope))

    @rule(scope=A_SCOPE, kind=st.sampled_from(_KINDS), n=MOSTLY_OWN, of=NUMBER, indexed=st.sampled_from(_INDEXED))
    def remove(self, scope: Scope, kind: RemovalKind, n: int, of: int, indexed: IndexKind) -> None:
        """Remove a row of some kind, of this scope or of another."""
        number, other = reach(scope, n), local(scope, of)
        if kind == "alias":
            removal = Removal("alias", f"entity {number}", "person")
        elif kind == "mention":
            removal = Removal("mention", entity_id(number), episode_id(1 + other))
        elif kind == "index":
            removal = Removal("index", _key(indexed, number), indexed)
        else:
            removal = Removal(kind, _IDS[kind](number + (kind == "episode")))
        self.write(lambda s: s.write(scope, Changes(removals=(removal,))))

    @rule(scope=A_SCOPE, n=NUMBER, kept=NUMBER, merged=NUMBER, undone=st.booleans())
    def put_merge(self, scope: Scope, n: int, kept: int, merged: int, undone: bool) -> None:
        """Insert or replace a merge."""
        row = merge(
            local(scope, n), local(scope, kept), local(scope, merged), scope, undone_at=day(8) if undone else None
        )
        self.write(lambda s: s.write(scope, Changes(merges=(row,))))

    @rule(scope=A_SCOPE, n=MOSTLY_OWN, kind=st.sampled_from(_INDEXED))
    def put_index(self, scope: Scope, n: int, kind: IndexKind) -> None:
        """Write the index entry of a row that may be missing."""
        number = reach(scope, n)
        self.write(lambda s: s.write(scope, Changes(index=(index_entry(_key(kind, number), kind),))))

    @rule(scope=A_SCOPE, n=MOSTLY_OWN, text=st.sampled_from(("", "less")))
    def redact(self, scope: Scope, n: int, text: str) -> None:
        """Replace the text of an episode that may be missing."""
        row = EpisodeRedaction(episode_id(1 + reach(scope, n)), text)
        self.write(lambda s: s.write(scope, Changes(redactions=(row,))))

    @rule(scope=A_SCOPE, since=st.none() | TIME, idle=TIME, now=st.integers(9, 12))
    def decay(self, scope: Scope, since: int | None, idle: int, now: int) -> None:
        """Apply decay to retrieval counts."""
        faded = None if since is None else day(since)
        self.write(lambda s: s.decay_retrievals(scope, rate=0.5, idle_since=day(idle), since=faded, now=day(now)))

    @rule(scope=A_SCOPE, job=st.sampled_from("ab"), n=NUMBER)
    def put_job_state(self, scope: Scope, job: str, n: int) -> None:
        """Write the state of a job."""
        self.write(lambda s: s.write(scope, Changes(job_states=(JobState(job, day(n), n),))))

    @rule(scope=A_SCOPE)
    def clear(self, scope: Scope) -> None:
        """Remove all rows of a scope."""
        self.write(lambda s: s.clear(scope))

    @rule(scopes=SOME_SCOPES, kept=NUMBER, undone=st.booleans(), limit=LIMIT, before=TIME)
    def look(self, scopes: list[Scope], kept: int, undone: bool, limit: int, before: int) -> None:
        """Read merges, the index, job states, and the candidates of upkeep."""
        of = MergeQuery(entity_ids=tuple(entity_id(local(scope, kept)) for scope in all_scopes()), undone=undone)
        self.read(lambda s: s.find_merges(scopes, of, limit=limit))
        self.read(lambda s: s.find_merges(scopes, MergeQuery(undone=undone), limit=limit, newest_first=True))
        for scope in scopes:
            episode_ids = [episode_id(1 + local(other, kept)) for other in all_scopes()]
            self.read(partial(_indexed, scope=scope))
            self.read(lambda s, scope=scope: s.find_job_states(scope))
            self.read(lambda s, scope=scope: s.find_idle(scope, before=day(before), now=day(before + 3), limit=limit))
            self.read(lambda s, scope=scope: s.find_least_connected(scope, limit=limit))
            self.read(lambda s, scope=scope: s.find_active_facts(scope, after=edge_id(kept), limit=limit))
            self.read(lambda s, scope=scope, ids=episode_ids: s.find_edges_of_episodes(scope, ids))


class StatefulUpkeepTests(StoreTests):
    """Random operations on merges, the index, job states and removals agree with the memory backend."""

    def test_random_operations_of_upkeep_agree_with_the_memory_backend(
        self, store: GraphBackend, tmp_path: Path
    ) -> None:
        """Run `UpkeepMachine`."""
        run_machine(UpkeepMachine, self, store, tmp_path)


def _key(kind: IndexKind, number: int) -> str:
    return {"episode": episode_id(number + 1), "fact": edge_id(number), "entity": entity_id(number)}.get(kind, "anna")


def _indexed(store: GraphBackend, scope: Scope) -> object:
    entries = sorted((entry.kind, entry.key, entry.model) for entry in store.read_index(scope))
    unindexed = [store.find_unindexed(scope, kind) for kind in _INDEXED]
    return entries, store.index_state(scope).model, unindexed


def _fill(store: GraphBackend, scope: Scope) -> None:
    numbers = [local(scope, n) for n in range(PER_SCOPE)]
    first, second, *_ = numbers
    episodes = [n + 1 for n in numbers]
    there = store.get_episodes([scope], [episode_id(n) for n in episodes])
    put_episodes(store, *(n for n in episodes if episode_id(n) not in there), scope=scope)
    edges = (
        edge(
            one,
            one,
            other,
            scope,
            episode_ids=(episode_id(one + 1), episode_id(first + 1)),
            retrieval_count=4.0,
            last_retrieved_at=day(one % 8),
            kind="inferred" if one == first else "state",
        )
        for one, other in pairwise(numbers)
    )
    put_graph(store, *edges)
    put_communities(
        store,
        community(first, scope),
        community(second, scope, level=1, parent_id=community_id(first)),
        members=[membership(first, first), membership(second, first), membership(first, second)],
    )
    found = tuple(traced_episode(n) for n in episodes[:2])
    put_recalls(store, recall_trace(first, scope, seeds=[first], facts=[(first, second)], episodes=found))
    named = tuple(mention(n, n + 1) for n in numbers)
    store.write(scope, Changes(mentions=named, merges=(merge(first, first, second, scope),)))
