"""State machine with random operations on the store under test and the memory backend; every read has to agree."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from graphmem.errors import InvalidInput
from graphmem.models import (
    Alias,
    Attachment,
    Changes,
    Corroboration,
    Edge,
    EdgeEnd,
    EdgeExpiry,
    EdgeQuery,
    EntityQuery,
    Episode,
    EpisodeEnd,
    EpisodeExpiry,
    EpisodeQuery,
    Mention,
    ProcessingResult,
    Scope,
    Subgraph,
)
from graphmem.protocols import GraphBackend
from graphmem.testing.base import StoreTests
from graphmem.testing.random_rows import (
    A_SCOPE,
    AS_OF,
    CHAIN,
    CONFIDENCE,
    EDGE_LIST,
    EDGE_READ,
    EDGE_SPEC,
    ENTITY_SPEC,
    EPISODE,
    EPISODE_FIELDS,
    LIMIT,
    NUMBER,
    NUMBERS,
    OWN_OR_STRANGE,
    PHRASES,
    PIECE,
    PLAIN,
    SOME_SCOPES,
    TIME,
    WALK,
    WORDS,
    EdgeRead,
    EdgeSpec,
    EntitySpec,
    PairOfStores,
    Walk,
    edge_of,
    local,
    moment,
    outcome,
    put_entity_specs,
    reach,
    run_machine,
)
from graphmem.testing.rows import (
    FUTURE,
    all_scopes,
    claimer,
    day,
    edge,
    edge_id,
    entity_id,
    episode,
    episode_id,
)


class StoreMachine(PairOfStores):
    """State machine for entities, facts, episodes and the queue."""

    def __init__(self, store: GraphBackend, *, is_shared: bool) -> None:
        super().__init__(store, is_shared=is_shared)
        self._episodes = 0

    @initialize(filled=st.booleans())
    def fill(self, filled: bool) -> None:
        """Start empty, or with entities, a chain of facts and two episodes in each scope."""
        for scope in all_scopes() if filled else ():
            people = [PLAIN._replace(n=n) for n in CHAIN]
            pairs = enumerate(pairwise(local(scope, n) for n in CHAIN))
            chain = tuple(edge(local(scope, n), source, target, scope) for n, (source, target) in pairs)
            episodes = [episode(self._episodes + n, scope, session_id="s") for n in (1, 2)]
            self._episodes += 2
            self.write(partial(_fill, scope=scope, people=people, edges=chain, episodes=episodes))

    # Writes ---------------------------------------------------------------------------------------

    @rule(scope=A_SCOPE, specs=st.lists(ENTITY_SPEC, min_size=1, max_size=4, unique_by=lambda spec: spec.n))
    def put_entities(self, scope: Scope, specs: list[EntitySpec]) -> None:
        """Insert or replace entities; two numbers share a name and a type."""
        self.write(lambda s: put_entity_specs(s, scope, specs))

    @rule(scope=A_SCOPE, alias=st.sampled_from(PHRASES), n=OWN_OR_STRANGE)
    def put_alias(self, scope: Scope, alias: str, n: int) -> None:
        """Register an alias, or assign it to another entity."""
        row = Alias(alias=alias, entity_type="person", entity_id=entity_id(reach(scope, n)))
        self.write(lambda s: s.write(scope, Changes(aliases=(row,))))

    @rule(scope=A_SCOPE, specs=EDGE_LIST)
    def put_edges(self, scope: Scope, specs: list[EdgeSpec]) -> None:
        """Insert edges, or replace them by id, possibly with other entities."""
        rows = tuple(edge_of(scope, spec) for spec in specs)
        self.write(lambda s: s.write(scope, Changes(edges=rows)), same_error=len(rows) == 1)

    @rule(scope=A_SCOPE, n=NUMBER, after=st.integers(0, 4), expired=TIME, successor=st.none() | EDGE_SPEC)
    def close_edge(self, scope: Scope, n: int, after: int, expired: int, successor: EdgeSpec | None) -> None:
        """End an edge (or retract it: 0 days after its start), with or without a successor."""
        number = local(scope, n)
        known = self._oracle.get_edges([scope], [edge_id(number)]).get(edge_id(number))
        begun = day(0) if known is None else known.valid_from
        ends = begun + (day(after) - day(0))
        rows = () if successor is None else (edge_of(scope, successor),)
        by = (EdgeEnd(by=edge_id(after), at=ends, told_at=day(expired)),)
        expiry = EdgeExpiry(edge_id(number), ends, day(expired), rows[0].id if rows else None, ends=by)
        self.write(lambda s: s.write(scope, Changes(expiries=(expiry,), edges=rows)), same_error=not rows)
        self.read(lambda s: s.find_edges([scope], EdgeQuery(ended_by=(edge_id(after),), versions="all")))

    @rule(scope=A_SCOPE, n=OWN_OR_STRANGE, confidence=CONFIDENCE, told_by=st.lists(EPISODE, max_size=3))
    def corroborate_edge(self, scope: Scope, n: int, confidence: float, told_by: list[int]) -> None:
        """State an edge again."""
        corroboration = Corroboration(
            edge_id(reach(scope, n)), confidence, tuple(episode_id(number) for number in told_by)
        )
        self.write(lambda s: s.write(scope, Changes(corroborations=(corroboration,))))

    @rule(scopes=SOME_SCOPES, numbers=NUMBERS, at=TIME)
    def record_retrievals(self, scopes: list[Scope], numbers: list[int], at: int) -> None:
        """Count retrievals."""
        self.write(lambda s: s.record_retrievals(scopes, [edge_id(n) for n in numbers], day(at)))

    @rule(
        scope=A_SCOPE,
        external_id=st.sampled_from((None, "x", "y")),
        session=st.sampled_from((None, "s", "t")),
        occurred=TIME,
        recorded=TIME,
        processed=st.booleans(),
        expires=st.none() | TIME,
    )
    def add_episode(
        self,
        scope: Scope,
        external_id: str | None,
        session: str | None,
        occurred: int,
        recorded: int,
        processed: bool,
        expires: int | None,
    ) -> None:
        """Store an episode, unless the scope holds its external id."""
        self._episodes += 1
        row = episode(
            self._episodes,
            scope,
            external_id=external_id,
            session_id=session,
            occurred_at=day(occurred),
            recorded_at=day(recorded),
            processed_at=day(8) if processed else None,
            expires_at=None if expires is None else day(expires),
            attachments=[Attachment(kind="image", description="Zürich")] if self._episodes % 2 else (),
        )
        self.write(lambda s: s.add_episodes(scope, [row]))

    @rule(scope=A_SCOPE, n=EPISODE, what=st.sampled_from(("processed", "retry", "failed", "again")))
    def settle(self, scope: Scope, n: int, what: str) -> None:
        """Write the processing result of an episode."""
        result = {
            "processed": ProcessingResult(episode_id(n), processed_at=day(8), attempts=1),
            "retry": ProcessingResult(episode_id(n), error="timed out", attempts=1, retry_at=FUTURE),
            "failed": ProcessingResult(episode_id(n), error="timed out", attempts=3),
            "again": ProcessingResult(episode_id(n)),
        }[what]
        self.write(lambda s: s.write(scope, Changes(results=(result,))))

    @rule(scope=A_SCOPE, n=EPISODE, at=st.none() | TIME, ends=st.booleans())
    def limit_episode(self, scope: Scope, n: int, at: int | None, ends: bool) -> None:
        """End an episode, or let it expire; or take that back."""
        when = None if at is None else day(at)
        changes = (
            Changes(episode_ends=(EpisodeEnd(episode_id(n), when),))
            if ends
            else Changes(episode_expiries=(EpisodeExpiry(episode_id(n), when),))
        )
        self.write(lambda s: s.write(scope, changes))
        self.read(lambda s: s.find_episodes([scope], EpisodeQuery(live_at=when or day(0))))

    @rule(owner=st.sampled_from("ab"), scopes=st.none() | SOME_SCOPES, now=TIME, lease=st.integers(1, 4), limit=LIMIT)
    def claim(self, owner: str, scopes: list[Scope] | None, now: int, lease: int, limit: int) -> None:
        """Claim episodes; the claims expire in the far future, one after the other."""
        start, end = (FUTURE + (day(n) - day(0)) for n in (now, now + lease))
        some = scopes or (all_scopes() if self._is_shared else None)
        self.write(lambda s: s.claim_episodes(claimer(owner), now=start, until=end, limit=limit, scopes=some))

    @rule(owners=st.lists(st.sampled_from("ab"), max_size=2, unique=True))
    def release(self, owners: list[str]) -> None:
        """Release claimed episodes."""
        self.write(lambda s: s.release_claims([claimer(owner) for owner in owners]))

    @rule(scope=A_SCOPE, n=OWN_OR_STRANGE, told_in=EPISODE, surface=st.sampled_from(("Anna", "she")))
    def mention(self, scope: Scope, n: int, told_in: int, surface: str) -> None:
        """Link an entity to an episode."""
        row = Mention(
            entity_id=entity_id(reach(scope, n)), episode_id=episode_id(told_in), surface=surface, seen_at=day(1)
        )
        self.write(lambda s: s.write(scope, Changes(mentions=(row,))))

    @rule(scope=A_SCOPE, entities=st.lists(ENTITY_SPEC, min_size=1, max_size=2), edges=EDGE_LIST, undone=st.booleans())
    def transaction(self, scope: Scope, entities: list[EntitySpec], edges: list[EdgeSpec], undone: bool) -> None:
        """Write twice in a transaction; the second write may fail, and the transaction may be rolled back."""
        rows = tuple(edge_of(scope, spec) for spec in edges)

        def run(store: GraphBackend) -> str:
            def work() -> str:
                for spec in entities:
                    outcome(partial(put_entity_specs, store, scope, [spec]))
                second = outcome(lambda: store.write(scope, Changes(edges=rows)))
                if undone:
                    raise InvalidInput("undone on purpose")
                return "refused" if second[0] == "raised" else "written"

            return store.atomic(work)

        self.write(run)

    # Reads ----------------------------------------------------------------------------------------

    @rule(
        scopes=SOME_SCOPES,
        numbers=st.none() | NUMBERS,
        types=st.none() | st.lists(st.sampled_from(("person", "tool")), max_size=2),
        as_of=AS_OF,
        archived=st.booleans(),
        chunk=LIMIT,
    )
    def read_entities(
        self,
        scopes: list[Scope],
        numbers: list[int] | None,
        types: list[str] | None,
        as_of: tuple[int, int] | None,
        archived: bool,
        chunk: int,
    ) -> None:
        """Read all pages of a query for entities."""
        query = EntityQuery(
            ids=None if numbers is None else tuple(entity_id(n) for n in numbers),
            entity_types=None if types is None else tuple(types),
            as_of=moment(as_of),
            archived=archived,
        )
        self.read(lambda s: list(s.all_entities(scopes, query, chunk=chunk)))

    @rule(reads=st.lists(EDGE_READ, min_size=1, max_size=8))
    def read_edges(self, reads: list[EdgeRead]) -> None:
        """Read all pages of queries for edges, or the newest."""
        for scopes, fields, versions, as_of, chunk, newest_first in reads:
            query = EdgeQuery(versions=versions, as_of=moment(as_of) if versions == "visible" else None, **fields)
            if newest_first:
                self.read(partial(_newest_edges, scopes=scopes, query=query, limit=chunk))
            else:
                self.read(partial(_all_edges, scopes=scopes, query=query, chunk=chunk))

    @rule(
        scopes=SOME_SCOPES,
        reads=st.lists(st.tuples(EPISODE_FIELDS, AS_OF, LIMIT, st.booleans()), min_size=1, max_size=6),
    )
    def read_episodes(
        self, scopes: list[Scope], reads: list[tuple[dict[str, Any], tuple[int, int] | None, int, bool]]
    ) -> None:
        """Read pages of episodes."""
        for fields, as_of, limit, newest_first in reads:
            query = EpisodeQuery(as_of=moment(as_of), **fields)
            self.read(partial(_page_of_episodes, scopes=scopes, query=query, limit=limit, newest_first=newest_first))
            self.read(lambda s, query=query, limit=limit: s.find_sessions(scopes, query, after="s", limit=limit))
            self.read(lambda s, query=query, limit=limit: s.find_sessions(scopes, query, limit=limit))

    @rule(scopes=SOME_SCOPES, numbers=st.none() | NUMBERS, episodes=st.none() | st.lists(EPISODE), limit=LIMIT)
    def read_mentions(
        self, scopes: list[Scope], numbers: list[int] | None, episodes: list[int] | None, limit: int
    ) -> None:
        """Read mentions."""
        of = None if numbers is None else [entity_id(n) for n in numbers]
        told_in = None if episodes is None else [episode_id(n) for n in episodes]
        self.read(lambda s: s.find_mentions(scopes, entity_ids=of, episode_ids=told_in, limit=limit))

    @rule(scope=A_SCOPE, scopes=SOME_SCOPES, names=st.lists(st.sampled_from(PHRASES), unique=True), numbers=NUMBERS)
    def read_names(self, scope: Scope, scopes: list[Scope], names: list[str], numbers: list[int]) -> None:
        """Resolve names and list aliases."""
        self.read(lambda s: sorted(s.resolve_names(scope, names), key=lambda found: (found[0], found[1].id)))
        self.read(lambda s: s.find_aliases(scopes, [entity_id(n) for n in numbers]))

    @rule(
        scopes=SOME_SCOPES,
        words=st.lists(st.sampled_from(WORDS), max_size=3),
        phrases=st.lists(st.sampled_from(PHRASES), max_size=3),
        piece=PIECE,
    )
    def search(self, scopes: list[Scope], words: list[str], phrases: list[str], piece: str) -> None:
        """Search entities, and facts by a substring of their text.

        The limit is never reached, because the ranking of entities is up to the store.
        """
        self.read(partial(_all_edges, scopes=scopes, query=EdgeQuery(text=piece, versions="all"), chunk=100))

        def hits(store: GraphBackend) -> list[Any]:
            found = store.search_entities(scopes, words=words, phrases=phrases, limit=1000)
            return sorted(found, key=lambda hit: hit.entity.id)

        self.read(hits)

    @rule(walks=st.lists(WALK, min_size=1, max_size=4))
    def expand(self, walks: list[Walk]) -> None:
        """Expand from some seeds, at most the maximum frontier of a hop."""
        for walk in walks:
            self.read(partial(_walked, walk=walk))


class StatefulTests(StoreTests):
    """Random operations agree with the memory backend."""

    def test_random_operations_agree_with_the_memory_backend(self, store: GraphBackend, tmp_path: Path) -> None:
        """Run `StoreMachine`."""
        run_machine(StoreMachine, self, store, tmp_path)


def _fill(
    store: GraphBackend, scope: Scope, people: list[EntitySpec], edges: tuple[Edge, ...], episodes: list[Episode]
) -> None:
    put_entity_specs(store, scope, people)
    store.write(scope, Changes(edges=edges))
    store.add_episodes(scope, episodes)


def _page_of_episodes(
    store: GraphBackend, *, scopes: list[Scope], query: EpisodeQuery, limit: int, newest_first: bool
) -> list[Episode]:
    return store.find_episodes(scopes, query, limit=limit, newest_first=newest_first)


def _newest_edges(store: GraphBackend, scopes: list[Scope], query: EdgeQuery, limit: int) -> list[Edge]:
    return store.find_edges(scopes, query, limit=limit, newest_first=True)


def _all_edges(store: GraphBackend, scopes: list[Scope], query: EdgeQuery, chunk: int) -> list[Edge]:
    return list(store.all_edges(scopes, query, chunk=chunk))


def _walked(store: GraphBackend, walk: Walk) -> dict[str, Sequence[object]]:
    seeds = [entity_id(n) for n in walk.seeds[: 3 if walk.limits is None else walk.limits.max_frontier]]
    graph = store.expand(
        walk.scopes, seeds, hops=walk.hops, edge_types=walk.kinds, as_of=moment(walk.as_of), limits=walk.limits
    )
    return _comparable(graph)


def _comparable(graph: Subgraph) -> dict[str, Sequence[object]]:
    """Return a subgraph as plain lists with edges sorted by id, because their order is unspecified."""
    nodes = [*zip(graph.node_ids, graph.names, graph.entity_types, graph.depth.tolist(), strict=True)]
    edges = zip(
        graph.edge_ids,
        [graph.node_ids[i] for i in graph.source],
        [graph.node_ids[i] for i in graph.target],
        graph.relations,
        graph.edge_types,
        graph.facts,
        graph.confidence.tolist(),
        graph.retrieval_count.tolist(),
        [round(seconds, 3) for seconds in graph.valid_from.tolist()],
        graph.inferred.tolist(),
        strict=True,
    )
    return {"nodes": nodes, "edges": sorted(edges)}
