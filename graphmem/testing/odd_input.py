"""Tests of unusual input: text that looks like syntax, empty input, and a closed store."""

# ruff: noqa: D102  the names of the tests describe them

from __future__ import annotations

from typing import Any

import pytest

from graphmem.models import (
    Alias,
    Changes,
    CommunityQuery,
    EdgeQuery,
    EntityQuery,
    EpisodeQuery,
    MembershipQuery,
    Mention,
    RecallQuery,
)
from graphmem.protocols import GraphBackend
from graphmem.testing.base import StoreTests
from graphmem.testing.rows import (
    FUTURE,
    claimer,
    community,
    day,
    edge,
    entity,
    entity_id,
    episode,
    episode_id,
    home,
    membership,
    put_communities,
    put_edges,
    put_entities,
    put_episodes,
    put_graph,
    put_recalls,
    recall_trace,
    traced_episode,
)

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
        assert store.release_claims([text]) == 0

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

    def test_what_was_written_is_there_after_closing_and_opening(self, own_store: GraphBackend) -> None:
        put_graph(own_store, edge(1, 1, 2))
        again = self.reopen(own_store)
        if again is None:
            pytest.skip("this own_store has one connection only")
        own_store.close()
        assert len(again.find_edges([home()], EdgeQuery())) == 1
        again.close()
