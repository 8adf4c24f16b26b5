"""State machine with random operations on communities and recall traces."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from graphmem.models import (
    Changes,
    Community,
    CommunityQuery,
    Membership,
    MembershipQuery,
    RecallQuery,
    RecallTrace,
    Scope,
)
from graphmem.protocols import GraphBackend
from graphmem.testing.base import StoreTests
from graphmem.testing.pair import PairOfStores, moment, run_machine
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
    local,
    reach,
)
from graphmem.testing.rows import (
    all_scopes,
    community,
    community_id,
    day,
    edge,
    membership,
    put_communities,
    put_episodes,
    put_graph,
    recall_trace,
    traced_episode,
)


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
            self.write(partial(_fill, scope=scope, number=number))

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


def _fill(store: GraphBackend, scope: Scope, number: int) -> None:
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
