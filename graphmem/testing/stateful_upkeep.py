"""State machine with random operations on merges, the index, job states, and the removal of rows of every kind."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import get_args

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from graphmem.models import Changes, EpisodeRedaction, IndexKind, JobState, MergeQuery, Removal, RemovalKind, Scope
from graphmem.protocols import GraphBackend
from graphmem.testing.base import StoreTests
from graphmem.testing.merges import mention, merge, merge_id
from graphmem.testing.pair import PairOfStores, run_machine
from graphmem.testing.random_rows import A_SCOPE, LIMIT, MOSTLY_OWN, NUMBER, PER_SCOPE, SOME_SCOPES, TIME, local, reach
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
