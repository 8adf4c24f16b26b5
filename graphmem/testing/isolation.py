"""Tests of scope isolation, and of unusual input: text that looks like syntax, empty input, and a closed store."""

# ruff: noqa: D102  the names of the tests describe them

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from graphmem.errors import BackendUnavailable, Conflict, InvalidInput
from graphmem.models import (
    Alias,
    Attachment,
    Changes,
    CommunityQuery,
    Corroboration,
    EdgeEnd,
    EdgeExpiry,
    EdgeQuery,
    EntityHit,
    EntityQuery,
    EpisodeQuery,
    EpisodeRedaction,
    JobState,
    MembershipQuery,
    Mention,
    MergeQuery,
    ProcessingResult,
    RecallQuery,
    Scope,
    StoreStats,
)
from graphmem.protocols import GraphBackend
from graphmem.testing.base import StoreTests, everything, own_scopes
from graphmem.testing.merges import merge, merge_id, put_merges
from graphmem.testing.rows import (
    FUTURE,
    claimer,
    community,
    community_id,
    day,
    edge,
    edge_id,
    entity,
    entity_id,
    episode,
    episode_id,
    home,
    membership,
    project,
    put_communities,
    put_edges,
    put_entities,
    put_episodes,
    put_graph,
    put_recalls,
    recall_id,
    recall_trace,
    scope_of,
    traced_episode,
)

LOOKALIKES = (("home", None), ("home", "project"), ("home/project", None), ("home%2Fproject", None), ("HOME", None))


def lookalikes() -> list[Scope]:
    """Return scopes with similar names that are easily confused."""
    return [scope_of(domain, project_id) for domain, project_id in LOOKALIKES]


def _by_id(hits: Sequence[EntityHit]) -> list[EntityHit]:
    return sorted(hits, key=lambda hit: hit.entity.id)


READS: dict[str, Callable[[GraphBackend, Sequence[Scope]], object]] = {
    "find_entities": lambda s, scopes: s.find_entities(scopes, EntityQuery(archived=True)),
    "find_entities by id": lambda s, scopes: s.find_entities(scopes, EntityQuery(ids=(entity_id(1), entity_id(3)))),
    "find_entities by type": lambda s, scopes: s.find_entities(scopes, EntityQuery(entity_types=("person",))),
    "get_entities": lambda s, scopes: s.get_entities(scopes, [entity_id(1), entity_id(2)]),
    "resolve_names": lambda s, scopes: [s.resolve_names(scope, ["entity 1", "entity 3"]) for scope in scopes],
    "find_aliases": lambda s, scopes: s.find_aliases(scopes, [entity_id(1), entity_id(2), entity_id(3)]),
    "search_entities by word": lambda s, scopes: _by_id(
        s.search_entities(scopes, words=["entity"], phrases=[], limit=9)
    ),
    "search_entities by phrase": lambda s, scopes: _by_id(
        s.search_entities(scopes, words=[], phrases=["entity 1", "entity 2"], limit=9)
    ),
    "find_edges": lambda s, scopes: s.find_edges(scopes, EdgeQuery(versions="all")),
    "find_edges newest first": lambda s, scopes: s.find_edges(scopes, EdgeQuery(), newest_first=True),
    "find_edges by id": lambda s, scopes: s.find_edges(scopes, EdgeQuery(ids=(edge_id(1),))),
    "find_edges by source": lambda s, scopes: s.find_edges(scopes, EdgeQuery(source_ids=(entity_id(1),))),
    "find_edges by target": lambda s, scopes: s.find_edges(scopes, EdgeQuery(target_ids=(entity_id(2),))),
    "find_edges touching": lambda s, scopes: s.find_edges(scopes, EdgeQuery(touching=(entity_id(1), entity_id(2)))),
    "find_edges by key": lambda s, scopes: s.find_edges(scopes, EdgeQuery(keys=(edge(1, 1, 2).key,))),
    "find_edges by slot": lambda s, scopes: s.find_edges(scopes, EdgeQuery(slots=((entity_id(1), "knows"),))),
    "find_edges by end": lambda s, scopes: s.find_edges(scopes, EdgeQuery(ended_by=("a message",), versions="all")),
    "find_edges by text": lambda s, scopes: s.find_edges(scopes, EdgeQuery(text="know")),
    "find_edges by window": lambda s, scopes: s.find_edges(scopes, EdgeQuery(window=("valid_from", day(-1), day(1)))),
    "get_edges": lambda s, scopes: s.get_edges(scopes, [edge_id(1)]),
    "find_active_facts": lambda s, scopes: [s.find_active_facts(scope) for scope in scopes],
    "find_episodes": lambda s, scopes: s.find_episodes(scopes, EpisodeQuery()),
    "find_episodes newest first": lambda s, scopes: s.find_episodes(scopes, EpisodeQuery(), newest_first=True),
    "find_episodes by id": lambda s, scopes: s.find_episodes(scopes, EpisodeQuery(ids=(episode_id(1),))),
    "find_episodes by external id": lambda s, scopes: s.find_episodes(scopes, EpisodeQuery(external_ids=("x",))),
    "find_episodes by session": lambda s, scopes: s.find_episodes(scopes, EpisodeQuery(session_id="s")),
    "find_episodes before": lambda s, scopes: s.find_episodes(scopes, EpisodeQuery(before=episode_id(2))),
    "find_sessions": lambda s, scopes: s.find_sessions(scopes, EpisodeQuery()),
    "get_episodes": lambda s, scopes: s.get_episodes(scopes, [episode_id(1)]),
    "claim_episodes": lambda s, scopes: s.claim_episodes(
        claimer("a"), now=day(1), until=FUTURE, limit=9, scopes=scopes
    ),
    "find_mentions": lambda s, scopes: s.find_mentions(scopes),
    "find_mentions by entity": lambda s, scopes: s.find_mentions(scopes, entity_ids=[entity_id(1)]),
    "find_mentions by episode": lambda s, scopes: s.find_mentions(scopes, episode_ids=[episode_id(1)]),
    "find_communities": lambda s, scopes: s.find_communities(scopes, CommunityQuery(ended=True)),
    "find_communities by id": lambda s, scopes: s.find_communities(scopes, CommunityQuery(ids=(community_id(1),))),
    "find_communities by level": lambda s, scopes: s.find_communities(scopes, CommunityQuery(level=0)),
    "find_communities by member": lambda s, scopes: s.find_communities(
        scopes, CommunityQuery(entity_ids=(entity_id(1), entity_id(2)))
    ),
    "find_memberships": lambda s, scopes: s.find_memberships(scopes, MembershipQuery(ended=True)),
    "find_memberships by level": lambda s, scopes: s.find_memberships(scopes, MembershipQuery(level=0)),
    "find_memberships by community": lambda s, scopes: s.find_memberships(
        scopes, MembershipQuery(community_ids=(community_id(1),))
    ),
    "find_memberships by entity": lambda s, scopes: s.find_memberships(
        scopes, MembershipQuery(entity_ids=(entity_id(1), entity_id(2)))
    ),
    "find_recalls": lambda s, scopes: s.find_recalls(scopes, RecallQuery()),
    "find_recalls newest first": lambda s, scopes: s.find_recalls(scopes, RecallQuery(), newest_first=True),
    "find_recalls by id": lambda s, scopes: s.find_recalls(scopes, RecallQuery(ids=(recall_id(1),))),
    "find_recalls by entity": lambda s, scopes: s.find_recalls(scopes, RecallQuery(entity_ids=(entity_id(1),))),
    "find_recalls by fact": lambda s, scopes: s.find_recalls(scopes, RecallQuery(edge_ids=(edge_id(1),))),
    "find_recalls by episode": lambda s, scopes: s.find_recalls(scopes, RecallQuery(episode_ids=(episode_id(1),))),
    "find_merges": lambda s, scopes: s.find_merges(scopes, MergeQuery(undone=True)),
    "find_merges newest first": lambda s, scopes: s.find_merges(scopes, MergeQuery(), newest_first=True),
    "find_merges by id": lambda s, scopes: s.find_merges(scopes, MergeQuery(ids=(merge_id(1),))),
    "find_merges by entity": lambda s, scopes: s.find_merges(scopes, MergeQuery(entity_ids=(entity_id(1),))),
    "find_job_states": lambda s, scopes: [s.find_job_states(scope) for scope in scopes],
    "find_least_connected": lambda s, scopes: [s.find_least_connected(scope) for scope in scopes],
    "find_edges_of_episodes": lambda s, scopes: [s.find_edges_of_episodes(scope, [episode_id(1)]) for scope in scopes],
    "expand": lambda s, scopes: s.expand(scopes, [entity_id(1), entity_id(2)], hops=2).node_ids,
}

WRITES: dict[str, Callable[[], Changes]] = {
    "alias": lambda: Changes(aliases=(Alias(alias="other", entity_type="person", entity_id=entity_id(1)),)),
    "expiry": lambda: Changes(expiries=(EdgeExpiry(edge_id(1), day(2), day(2)),)),
    "edge from": lambda: Changes(edges=(edge(101, 1, 101, project()),)),
    "edge to": lambda: Changes(edges=(edge(101, 101, 1, project()),)),
    "corroboration": lambda: Changes(corroborations=(Corroboration(edge_id(1), 1.0),)),
    "mention of": lambda: Changes(
        mentions=(Mention(entity_id=entity_id(1), episode_id=episode_id(101), surface="x", seen_at=day(1)),)
    ),
    "mention in": lambda: Changes(
        mentions=(Mention(entity_id=entity_id(101), episode_id=episode_id(1), surface="x", seen_at=day(1)),)
    ),
    "edge told by": lambda: Changes(
        edges=(edge(101, 101, 102, project(), relation="likes", episode_ids=(episode_id(1),)),)
    ),
    "corroboration by": lambda: Changes(corroborations=(Corroboration(edge_id(101), 1.0, (episode_id(1),)),)),
    "result": lambda: Changes(results=(ProcessingResult(episode_id(1), processed_at=day(2)),)),
    "redaction": lambda: Changes(redactions=(EpisodeRedaction(episode_id(1), "less"),)),
    "member": lambda: Changes(memberships=(membership(1, 101),)),
    "member of": lambda: Changes(memberships=(membership(101, 1),)),
    "part of": lambda: Changes(communities=(community(102, project(), parent_id=community_id(1)),)),
    "recall from": lambda: Changes(recalls=(recall_trace(102, project(), seeds=[1]),)),
    "recall of": lambda: Changes(recalls=(recall_trace(102, project(), facts=[(1, 101)]),)),
    "recall at": lambda: Changes(recalls=(recall_trace(102, project(), facts=[(101, 1)]),)),
    "recall of episode": lambda: Changes(recalls=(recall_trace(102, project(), episodes=(traced_episode(1),)),)),
    "community of another scope": lambda: Changes(communities=(community(5, home()),)),
    "recall of another scope": lambda: Changes(recalls=(recall_trace(5, home()),)),
    "entity of another scope": lambda: Changes(entities=(entity(5, home()),)),
    "edge of another scope": lambda: Changes(edges=(edge(5, 1, 2, home()),)),
}


class IsolationTests(StoreTests):
    """A read sees only the scopes that it names, and a write changes only the scope that it names."""

    @pytest.mark.parametrize("read", READS)
    def test_a_read_sees_its_own_scope(self, store: GraphBackend, read: str) -> None:
        _fill(store, home(), 0)
        assert _has_rows(READS[read](store, [home()]))

    @pytest.mark.parametrize("read", READS)
    def test_a_read_sees_nothing_of_another_scope(self, store: GraphBackend, read: str) -> None:
        _fill(store, home(), 0)
        for other in (scope_of("other"), *lookalikes()[1:]):
            assert not _has_rows(READS[read](store, [other])), other

    @pytest.mark.parametrize("read", READS)
    def test_a_read_of_no_scope_sees_nothing(self, store: GraphBackend, read: str) -> None:
        _fill(store, home(), 0)
        try:
            found = READS[read](store, [])
        except InvalidInput:
            found = None  # raising an error is accepted as well
        assert not _has_rows(found)

    @pytest.mark.parametrize("read", READS)
    def test_a_read_sees_the_same_whatever_other_scopes_hold(self, store: GraphBackend, read: str) -> None:
        _fill(store, home(), 0)
        alone = READS[read](store, [home()])
        store.release_claims([claimer("a")])
        for n, scope in enumerate(lookalikes()[1:], start=1):
            _fill(store, scope, 100 * n)
        assert READS[read](store, [home()]) == alone

    def test_a_read_of_several_scopes_sees_those_and_no_other(self, store: GraphBackend) -> None:
        for n, scope in enumerate(lookalikes()):
            _fill(store, scope, 100 * n)
        both = lookalikes()[1:3]
        found = {
            "entities": [row.scope for row in store.find_entities(both, EntityQuery())],
            "edges": [row.scope for row in store.find_edges(both, EdgeQuery())],
            "episodes": [row.scope for row in store.find_episodes(both, EpisodeQuery())],
            "hits": sorted(
                [hit.entity.scope for hit in store.search_entities(both, words=["entity"], phrases=[], limit=9)],
                key=lambda scope: both.index(scope),
            ),
        }
        twice = [both[0], both[0], both[1], both[1]]
        assert found == {"entities": twice, "edges": list(both), "episodes": twice, "hits": twice}

    @pytest.mark.parametrize(
        "number", range(len(LOOKALIKES)), ids=["/".join(filter(None, names)) for names in LOOKALIKES]
    )
    def test_scopes_with_similar_names_are_apart(self, store: GraphBackend, number: int) -> None:
        for n, scope in enumerate(lookalikes()):
            _fill(store, scope, 100 * n)
        found = store.find_entities([lookalikes()[number]], EntityQuery())
        assert [row.id for row in found] == [entity_id(100 * number + n) for n in (1, 2)]

    @pytest.mark.parametrize("change", WRITES)
    def test_a_write_refuses_ids_of_another_scope_and_changes_nothing(self, store: GraphBackend, change: str) -> None:
        _fill(store, home(), 0)
        _fill(store, project(), 100)
        before = everything(store)
        with pytest.raises(InvalidInput):
            store.write(project(), WRITES[change]())
        assert everything(store) == before

    @pytest.mark.parametrize(
        "change",
        [
            lambda: Changes(entities=(entity(1, project(), name="Other"),)),
            lambda: Changes(edges=(edge(1, 101, 102, project()),)),
            lambda: Changes(communities=(community(1, project(), name="Other"),)),
            lambda: Changes(recalls=(recall_trace(1, project(), seeds=[101]),)),
        ],
        ids=["entity", "edge", "community", "recall"],
    )
    def test_a_row_of_another_scope_is_not_replaced_by_its_id(
        self, store: GraphBackend, change: Callable[[], Changes]
    ) -> None:
        _fill(store, home(), 0)
        _fill(store, project(), 100)
        before = everything(store)
        with pytest.raises(Conflict):
            store.write(project(), change())
        assert everything(store) == before

    def test_an_episode_of_another_scope_is_refused(self, store: GraphBackend) -> None:
        with pytest.raises(InvalidInput):
            store.add_episodes(project(), [episode(1, home())])
        assert own_scopes(store) == []

    def test_retrievals_of_another_scope_are_not_counted(self, store: GraphBackend) -> None:
        _fill(store, home(), 0)
        _fill(store, project(), 100)
        before = everything(store)
        store.record_retrievals([project()], [edge_id(1)], day(3))
        assert everything(store) == before

    def test_a_claim_in_one_scope_takes_nothing_of_another(self, store: GraphBackend) -> None:
        _fill(store, home(), 0)
        _fill(store, project(), 100)
        claimed = store.claim_episodes(claimer("a"), now=day(1), until=FUTURE, limit=9, scopes=[project()])
        assert [e.scope for e in claimed] == [project(), project()]

    def test_stats_count_one_scope(self, store: GraphBackend) -> None:
        _fill(store, home(), 0)
        _fill(store, project(), 100)
        assert store.stats(scope_of("other")) == StoreStats()
        assert store.stats(home()) == StoreStats(
            entities=2,
            aliases=2,
            edges=2,
            active_edges=1,
            episodes=2,
            pending_episodes=2,
            mentions=1,
            communities=1,
            community_members=2,
            recalls=1,
            edges_by_type={"semantic": 2},
            entities_by_type={"person": 2},
        )

    def test_scopes_are_those_that_hold_something_by_key(self, empty_store: GraphBackend) -> None:
        before = empty_store.scopes()
        empty_store.add_episodes(project(), [episode(1, project())])
        put_entities(empty_store, entity(1, scope_of("a b/ü%")))
        put_entities(empty_store, entity(2, home()))
        put_communities(empty_store, community(3, scope_of("communities")))
        put_recalls(empty_store, recall_trace(4, scope_of("recalls")))
        expected = [project(), scope_of("a b/ü%"), home(), scope_of("communities"), scope_of("recalls")]
        assert (before, empty_store.scopes()) == ([], sorted(expected, key=lambda s: s.key))


def _fill(store: GraphBackend, scope: Scope, start: int) -> None:
    """Write entities start + 1 and start + 2 to a scope, and one or two equally named rows of other kinds."""
    names = [{"name": f"Entity {n}"} for n in (1, 2)]
    put_entities(store, *(entity(start + n, scope, **given) for n, given in enumerate(names, start=1)))
    rows = [episode(start + n, scope, session_id="s", external_id=name) for n, name in enumerate(("x", "y"), start=1)]
    store.add_episodes(scope, rows)
    over = {"valid_to": day(1), "ends": (EdgeEnd(by="a message", at=day(1), told_at=day(1)),)}
    put_edges(
        store,
        edge(start + 1, start + 1, start + 2, scope, episode_ids=(episode_id(start + 1),)),
        edge(start + 2, start + 2, start + 1, scope, **over),
    )
    mention = Mention(
        entity_id=entity_id(start + 1), episode_id=episode_id(start + 1), surface="Entity", seen_at=day(1)
    )
    store.write(scope, Changes(mentions=(mention,), job_states=(JobState("job"),)))
    put_merges(store, merge(start + 1, start + 1, start + 2, scope))
    members = [membership(start + 1, start + 1), membership(start + 2, start + 1)]
    put_communities(store, community(start + 1, scope), members=members)
    found = (traced_episode(start + 1),)
    put_recalls(
        store, recall_trace(start + 1, scope, seeds=[start + 1], facts=[(start + 1, start + 2)], episodes=found)
    )


def _has_rows(found: object) -> bool:
    """Return whether a read found a row; the result for several scopes is a list of lists."""
    rows = cast("list[object] | dict[str, object] | None", found)
    return any(rows) if rows and isinstance(rows, list) and isinstance(rows[0], list) else bool(rows)


HOSTILE = [
    "'; DROP TABLE entities; --",
    '"}) DETACH DELETE n //',
    "100%_\\*?[a-z]",
    "$1 :name {x} ? @p",
    "\u202eright to left\u202c",
    "e\u0301 and é",
    "👩‍👩‍👧‍👦 zero\u200bwidth",
    "a\tb\nc\r\nd",
    "null",
    " ",
    "x" * 512,
]


class OddInputTests(StoreTests):
    """Any text is treated as data; empty requests return empty results."""

    @pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
    def test_a_text_comes_back_as_it_was_in_every_field(self, store: GraphBackend, text: str) -> None:
        row = entity(1, name=text, canonical_name=text, entity_type=text, summary=text, properties={text: text})
        put_entities(store, row, entity(2))
        fields: dict[str, Any] = dict.fromkeys(("session_id", "role", "speaker", "title", "external_id", "error"), text)
        stored = episode(1, text=text, metadata={text: text}, **fields)
        store.add_episodes(home(), [stored])
        fact = edge(1, 1, 2, relation=text[:256], fact=text, properties={text: text}, episode_ids=(episode_id(1),))
        put_edges(store, fact)
        mention = Mention(entity_id=entity_id(1), episode_id=episode_id(1), surface=text, seen_at=day(1))
        group = community(1, name=text, summary=text, fingerprint=text)
        found = recall_trace(1, query=text, strategy=text, episodes=(traced_episode(1, channel=text),))
        store.write(home(), Changes(mentions=(mention,), communities=(group,), recalls=(found,)))
        assert store.find_entities([home()], EntityQuery(entity_types=(text,))) == [row]
        assert store.resolve_names(home(), [text]) == [(text, row)]
        assert store.find_aliases([home()], [entity_id(1)]) == [
            Alias(alias=text, entity_type=text, entity_id=entity_id(1))
        ]
        assert store.find_episodes([home()], EpisodeQuery(session_id=text, external_ids=(text,))) == [stored]
        assert store.find_edges([home()], EdgeQuery(relations=(text[:256],), text=text)) == [fact]
        assert store.find_mentions([home()]) == [mention]
        assert store.find_communities([home()], CommunityQuery()) == [group]
        assert store.find_recalls([home()], RecallQuery()) == [found]
        assert [hit.alias for hit in store.search_entities([home()], words=[], phrases=[text], limit=1)] == [text]
        assert store.expand([home()], [entity_id(2)], hops=1).facts == [text]

    def test_an_empty_text_is_not_an_absent_one(self, store: GraphBackend) -> None:
        names = ("title", "session_id", "role", "speaker", "external_id", "error")
        fields: dict[str, Any] = dict.fromkeys(names, "")
        attached = Attachment(kind="file", name="", media_type="", url="", description="")
        empty = episode(1, text="", metadata={"": ""}, attachments=(attached,), **fields)
        put_entities(store, entity(1), entity(2))
        fact = edge(1, 1, 2, valid_to=day(1), expired_at=day(1), end_reason="", properties={"": ""})
        put_edges(store, fact)
        assert store.add_episodes(home(), [empty, episode(2)]) == [(episode_id(1), True), (episode_id(2), True)]
        assert store.find_episodes([home()], EpisodeQuery()) == [empty, episode(2)]
        assert store.find_episodes([home()], EpisodeQuery(state="failed")) == [empty]
        assert store.find_episodes([home()], EpisodeQuery(external_ids=("",))) == [empty]
        assert store.add_episodes(home(), [episode(3, external_id="")]) == [(episode_id(1), False)]
        assert store.find_edges([home()], EdgeQuery(versions="all")) == [fact]

    @pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
    def test_ids_that_are_no_ids_are_absent(self, store: GraphBackend, text: str) -> None:
        put_graph(store, edge(1, 1, 2))
        put_episodes(store, 1)
        assert store.get_entities([home()], [text]) == {}
        assert store.get_edges([home()], [text]) == {}
        assert store.get_episodes([home()], [text]) == {}
        assert store.find_aliases([home()], [text]) == []
        assert store.find_mentions([home()], entity_ids=[text]) == []
        assert store.find_edges([home()], EdgeQuery(touching=(text,))) == []
        assert store.find_communities([home()], CommunityQuery(entity_ids=(text,))) == []
        assert store.find_memberships([home()], MembershipQuery(community_ids=(text,))) == []
        assert store.find_recalls([home()], RecallQuery(edge_ids=(text,))) == []
        assert store.expand([home()], [text], hops=1).node_ids == []
        assert store.release_claims([text]) == []

    def test_a_limit_of_nothing_gives_nothing(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2))
        put_episodes(store, 1)
        put_communities(store, community(1), members=[membership(1, 1)])
        put_recalls(store, recall_trace(1, seeds=[1]))
        assert store.find_communities([home()], CommunityQuery(), limit=0) == []
        assert store.find_memberships([home()], MembershipQuery(), limit=0) == []
        assert store.find_recalls([home()], RecallQuery(), limit=0) == []
        assert store.find_entities([home()], EntityQuery(), limit=0) == []
        assert store.find_edges([home()], EdgeQuery(), limit=0) == []
        assert store.find_episodes([home()], EpisodeQuery(), limit=0) == []
        assert store.find_mentions([home()], limit=0) == []
        assert store.search_entities([home()], words=["entity"], phrases=["entity 1"], limit=0) == []
        assert store.claim_episodes(claimer("a"), now=day(1), until=FUTURE, limit=0) == []

    def test_asking_for_nothing_gives_nothing(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2))
        assert store.resolve_names(home(), []) == []
        assert store.find_aliases([home()], []) == []
        assert store.get_entities([home()], []) == {}
        assert store.get_edges([home()], []) == {}
        assert store.get_episodes([home()], []) == {}
        assert store.add_episodes(home(), []) == []

    def test_an_empty_store_answers_every_read(self, empty_store: GraphBackend) -> None:
        assert empty_store.find_entities([home()], EntityQuery()) == []
        assert empty_store.find_edges([home()], EdgeQuery()) == []
        assert empty_store.find_episodes([home()], EpisodeQuery()) == []
        assert empty_store.find_mentions([home()]) == []
        assert empty_store.find_communities([home()], CommunityQuery()) == []
        assert empty_store.find_memberships([home()], MembershipQuery()) == []
        assert empty_store.find_recalls([home()], RecallQuery()) == []
        assert empty_store.search_entities([home()], words=["a"], phrases=["a"], limit=9) == []
        assert empty_store.claim_episodes(claimer("a"), now=day(1), until=FUTURE, limit=9) == []
        assert (empty_store.scopes(), empty_store.claim_owners(day(1))) == ([], [])
        assert empty_store.stats(home()).entities == 0

    def test_stats_count_archived_and_ended_rows_among_all(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2), edge(2, 1, 2, valid_to=day(1), expired_at=day(1), edge_type="causal"))
        put_entities(store, entity(3, archived_at=day(1), entity_type="tool"))
        stats = store.stats(home())
        assert (stats.entities, stats.archived_entities, stats.edges, stats.active_edges) == (3, 1, 2, 1)
        assert stats.entities_by_type == {"person": 2, "tool": 1}
        assert stats.edges_by_type == {"semantic": 1, "causal": 1}

    def test_a_sound_store_is_diagnosed_as_well(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2))
        found = store.diagnose()
        assert found
        assert [what for what, well, _ in found if not well] == []

    def test_closing_twice_does_nothing_more(self, own_store: GraphBackend) -> None:
        put_entities(own_store, entity(1))
        own_store.close()
        own_store.close()

    def test_a_closed_store_refuses_reads_and_writes(self, own_store: GraphBackend) -> None:
        own_store.close()
        with pytest.raises(BackendUnavailable):
            own_store.stats(home())
        with pytest.raises(BackendUnavailable):
            put_entities(own_store, entity(1))

    def test_what_was_written_is_there_after_closing_and_opening(self, own_store: GraphBackend) -> None:
        put_graph(own_store, edge(1, 1, 2))
        again = self.reopen(own_store)
        if again is None:
            pytest.skip("this own_store has one connection only")
        own_store.close()
        assert len(again.find_edges([home()], EdgeQuery())) == 1
        again.close()
