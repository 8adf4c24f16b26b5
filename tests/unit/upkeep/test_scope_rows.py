"""Rows as lines of an export."""

from __future__ import annotations

import json

from graphmem import Attachment, Episode
from graphmem.models import (
    Alias,
    Community,
    Edge,
    EdgeBeginning,
    Entity,
    IndexEntry,
    Membership,
    Mention,
    RecallTrace,
    Scope,
    TracedEpisode,
    TracedFact,
    TracedSeed,
    utc_now,
)
from graphmem.upkeep.scope_rows import References, Row, from_json, to_json

HOME = Scope("home")
PICTURE = Attachment(kind="image", description='a "grey" dog')


def test_an_episode_comes_back_with_its_attachments() -> None:
    episode = Episode(scope=HOME, text="Look!", attachments=(PICTURE,), metadata={"n": 1})
    line = json.loads(to_json("episode", episode))
    assert line["attachments"] == [{"kind": "image", "description": 'a "grey" dog'}]
    assert from_json("episode", line, HOME) == episode


def test_an_episode_without_attachments_has_no_such_field() -> None:
    assert "attachments" not in json.loads(to_json("episode", Episode(scope=HOME, text="Look!")))


def test_attachments_that_an_earlier_version_exported_in_the_metadata_are_read() -> None:
    line = {"text": "Look!", "metadata": {"attachments": json.dumps([PICTURE.model_dump(exclude_none=True)])}}
    found = from_json("episode", line, HOME)
    assert isinstance(found, Episode)
    assert (found.attachments, found.metadata) == ((PICTURE,), {})


def test_a_fact_that_an_earlier_version_exported_has_no_stated_beginnings() -> None:
    edge = Edge(scope=HOME, source_id="ada", target_id="oslo", relation="in", valid_from=NOW, recorded_at=NOW)
    line = json.loads(to_json("edge", edge))
    assert not {"ends", "beginnings"} & line.keys()
    assert from_json("edge", line, HOME) == edge


def test_a_fact_comes_back_with_its_stated_beginnings() -> None:
    stated = EdgeBeginning(by="a message", at=NOW, told_at=NOW)
    edge = Edge(scope=HOME, source_id="ada", target_id="oslo", relation="in", valid_from=NOW, beginnings=(stated,))
    assert from_json("edge", json.loads(to_json("edge", edge)), HOME) == edge


NOW = utc_now()
ADA, OSLO, GONE = (
    Entity(scope=HOME, name=name, canonical_name=name, entity_type="person", first_seen_at=NOW, last_seen_at=NOW)
    for name in ("ada", "oslo", "gone")
)
HELLO, LOST = Episode(scope=HOME, text="Hello"), Episode(scope=HOME, text="Lost")
LEVEL = Community(scope=HOME, created_at=NOW, updated_at=NOW)


def fact(source: Entity, target: Entity, *episodes: Episode) -> Edge:
    ids = tuple(episode.id for episode in episodes)
    return Edge(scope=HOME, source_id=source.id, target_id=target.id, relation="in", episode_ids=ids, valid_from=NOW)


def kept(references: References, *rows: Row) -> list[Row]:
    return [row for row in map(references.keep, rows) if row is not None]


def rows_about(entity: Entity, episode: Episode, edge: Edge, community: Community) -> list[Row]:
    """Return a row of each kind that refers to others, for which nothing is left of it without them."""
    return [
        Alias(alias="ada", entity_type="person", entity_id=entity.id),
        Mention(entity_id=entity.id, episode_id=episode.id, surface="Ada", seen_at=NOW),
        Membership(community_id=community.id, entity_id=entity.id, since=NOW),
        IndexEntry(kind="entity", key=entity.id),
        IndexEntry(kind="episode", key=episode.id),
        IndexEntry(kind="fact", key=edge.id),
    ]


def trace(entity: Entity, episode: Episode, edge: Edge) -> RecallTrace:
    return RecallTrace(
        scope=HOME,
        query="?",
        strategy="bfs",
        asked_at=NOW,
        seeds=(TracedSeed(entity_id=entity.id, score=1),),
        facts=(TracedFact(edge_id=edge.id, entity_id=entity.id, hop=1, channel="graph", rank=1, score=1),),
        episodes=(TracedEpisode(episode_id=episode.id, channel="words", rank=1, score=1),),
    )


def test_rows_whose_references_are_there_stay_as_they_are() -> None:
    references = References()
    edge, inner = (
        fact(ADA, OSLO, HELLO),
        Community(scope=HOME, created_at=NOW, updated_at=NOW, level=1, parent_id=LEVEL.id),
    )
    rows: list[Row] = [
        HELLO,
        ADA,
        OSLO,
        edge,
        LEVEL,
        inner,
        *rows_about(ADA, HELLO, edge, LEVEL),
        trace(ADA, HELLO, edge),
    ]
    assert kept(references, *rows) == rows
    assert references.left_out == 0


def test_rows_about_deleted_rows_are_left_out() -> None:
    references = References()
    there = kept(references, HELLO, ADA, OSLO, LEVEL)
    assert len(there) == 4
    for row in rows_about(GONE, LOST, fact(ADA, OSLO), Community(scope=HOME, created_at=NOW, updated_at=NOW)):
        assert references.keep(row) is None
    assert references.keep(fact(ADA, GONE, HELLO)) is None
    assert references.keep(IndexEntry(kind="name", key="whatever")) is not None
    assert references.left_out == 9


def test_a_row_that_can_do_without_a_deleted_one_loses_the_reference() -> None:
    references = References()
    kept(references, HELLO, ADA, OSLO)
    edge = fact(ADA, OSLO, LOST, HELLO)
    orphan = Community(scope=HOME, created_at=NOW, updated_at=NOW, level=1, parent_id=LEVEL.id)
    empty = trace(GONE, LOST, fact(ADA, GONE)).changed(seeds=(), facts=(), episodes=())
    asked = trace(GONE, LOST, fact(ADA, GONE)).changed(id=empty.id)
    assert kept(references, edge, orphan, asked) == [
        edge.changed(episode_ids=(HELLO.id,)),
        orphan.changed(parent_id=None),
        empty,
    ]
    assert references.left_out == 5
