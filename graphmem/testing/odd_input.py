"""Odd input: plain text that looks like something else, nothing at all, and a store that is closed."""

# ruff: noqa: D102  the names of the tests say what they show

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
    HOME,
    community,
    day,
    edge,
    entity,
    entity_id,
    episode,
    episode_id,
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
    """Texts are data, whatever they look like; asking for nothing gives nothing."""

    @pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
    def test_a_text_comes_back_as_it_was_in_every_field(self, store: GraphBackend, text: str) -> None:
        row = entity(1, name=text, canonical_name=text, entity_type=text, summary=text, properties={text: text})
        put_entities(store, row, entity(2))
        fields: dict[str, Any] = dict.fromkeys(("session_id", "role", "speaker", "title", "external_id", "error"), text)
        told = episode(1, text=text, metadata={text: text}, **fields)
        store.add_episodes(HOME, [told])
        fact = edge(1, 1, 2, relation=text[:256], fact=text, properties={text: text}, episode_ids=(episode_id(1),))
        put_edges(store, fact)
        mention = Mention(entity_id=entity_id(1), episode_id=episode_id(1), surface=text, seen_at=day(1))
        group = community(1, name=text, summary=text, fingerprint=text)
        found = recall_trace(1, query=text, strategy=text, episodes=(traced_episode(1, channel=text),))
        store.write(HOME, Changes(mentions=(mention,), communities=(group,), recalls=(found,)))
        assert store.find_entities([HOME], EntityQuery(entity_types=(text,))) == [row]
        assert store.resolve_names(HOME, [text]) == [(text, row)]
        assert store.find_aliases([HOME], [entity_id(1)]) == [
            Alias(alias=text, entity_type=text, entity_id=entity_id(1))
        ]
        assert store.find_episodes([HOME], EpisodeQuery(session_id=text, external_ids=(text,))) == [told]
        assert store.find_edges([HOME], EdgeQuery(relations=(text[:256],), text=text)) == [fact]
        assert store.find_mentions([HOME]) == [mention]
        assert store.find_communities([HOME], CommunityQuery()) == [group]
        assert store.find_recalls([HOME], RecallQuery()) == [found]
        assert [hit.alias for hit in store.search_entities([HOME], words=[], phrases=[text], limit=1)] == [text]
        assert store.expand([HOME], [entity_id(2)], hops=1).facts == [text]

    @pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
    def test_ids_that_are_no_ids_are_absent(self, store: GraphBackend, text: str) -> None:
        put_graph(store, edge(1, 1, 2))
        put_episodes(store, 1)
        assert store.get_entities([HOME], [text]) == {}
        assert store.get_edges([HOME], [text]) == {}
        assert store.get_episodes([HOME], [text]) == {}
        assert store.find_aliases([HOME], [text]) == []
        assert store.find_mentions([HOME], entity_ids=[text]) == []
        assert store.find_edges([HOME], EdgeQuery(touching=(text,))) == []
        assert store.find_communities([HOME], CommunityQuery(entity_ids=(text,))) == []
        assert store.find_memberships([HOME], MembershipQuery(community_ids=(text,))) == []
        assert store.find_recalls([HOME], RecallQuery(edge_ids=(text,))) == []
        assert store.expand([HOME], [text], hops=1).node_ids == []
        assert store.release_claims([text]) == 0

    def test_a_limit_of_nothing_gives_nothing(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2))
        put_episodes(store, 1)
        put_communities(store, community(1), members=[membership(1, 1)])
        put_recalls(store, recall_trace(1, seeds=[1]))
        assert store.find_communities([HOME], CommunityQuery(), limit=0) == []
        assert store.find_memberships([HOME], MembershipQuery(), limit=0) == []
        assert store.find_recalls([HOME], RecallQuery(), limit=0) == []
        assert store.find_entities([HOME], EntityQuery(), limit=0) == []
        assert store.find_edges([HOME], EdgeQuery(), limit=0) == []
        assert store.find_episodes([HOME], EpisodeQuery(), limit=0) == []
        assert store.find_mentions([HOME], limit=0) == []
        assert store.search_entities([HOME], words=["entity"], phrases=["entity 1"], limit=0) == []
        assert store.claim_episodes("a", now=day(1), until=FUTURE, limit=0) == []

    def test_asking_for_nothing_gives_nothing(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2))
        assert store.resolve_names(HOME, []) == []
        assert store.find_aliases([HOME], []) == []
        assert store.get_entities([HOME], []) == {}
        assert store.get_edges([HOME], []) == {}
        assert store.get_episodes([HOME], []) == {}
        assert store.add_episodes(HOME, []) == []

    def test_an_empty_store_answers_every_read(self, store: GraphBackend) -> None:
        assert store.find_entities([HOME], EntityQuery()) == []
        assert store.find_edges([HOME], EdgeQuery()) == []
        assert store.find_episodes([HOME], EpisodeQuery()) == []
        assert store.find_mentions([HOME]) == []
        assert store.find_communities([HOME], CommunityQuery()) == []
        assert store.find_memberships([HOME], MembershipQuery()) == []
        assert store.find_recalls([HOME], RecallQuery()) == []
        assert store.search_entities([HOME], words=["a"], phrases=["a"], limit=9) == []
        assert store.claim_episodes("a", now=day(1), until=FUTURE, limit=9) == []
        assert (store.scopes(), store.claim_owners(), store.stats(HOME).entities) == ([], [], 0)

    def test_stats_count_archived_and_ended_rows_among_all(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2), edge(2, 1, 2, valid_to=day(1), expired_at=day(1), edge_type="causal"))
        put_entities(store, entity(3, archived_at=day(1), entity_type="tool"))
        stats = store.stats(HOME)
        assert (stats.entities, stats.archived_entities, stats.edges, stats.active_edges) == (3, 1, 2, 1)
        assert stats.entities_by_type == {"person": 2, "tool": 1}
        assert stats.edges_by_type == {"semantic": 1, "causal": 1}

    def test_a_sound_store_is_diagnosed_as_well(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2))
        found = store.diagnose()
        assert found
        assert [what for what, well, _ in found if not well] == []

    def test_closing_twice_does_nothing_more(self, store: GraphBackend) -> None:
        put_entities(store, entity(1))
        store.close()
        store.close()

    def test_what_was_written_is_there_after_closing_and_opening(self, store: GraphBackend) -> None:
        put_graph(store, edge(1, 1, 2))
        again = self.reopen(store)
        if again is None:
            pytest.skip("this store has one connection only")
        store.close()
        assert len(again.find_edges([HOME], EdgeQuery())) == 1
        again.close()
