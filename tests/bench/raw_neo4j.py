"""The yardstick: the plain driver doing the obvious, `UNWIND … MERGE` into the same constraints and indexes.

`STATED` merges entities and facts and nothing else. `TRACED` merges what a memory has to know of the same triples,
too: the passage that each came from, which entities it mentions, since when a fact holds, and names that full text
finds. Names are cleaned and ids are made beforehand, so that what is measured is the driver and the server.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, LiteralString

import world
from neo4j import Driver

from graphmem.models import EdgeType, Scope, new_id, utc_now
from graphmem_neo4j.rows import scoped_words

STATED: LiteralString = """
UNWIND $rows AS row
MERGE (s:Graphmem:Entity {scope: $scope, canonical_name: row.subject, entity_type: 'concept'})
ON CREATE SET s.id = row.subject_id, s.name = row.subject_name
MERGE (t:Graphmem:Entity {scope: $scope, canonical_name: row.object, entity_type: 'concept'})
ON CREATE SET t.id = row.object_id, t.name = row.object_name
MERGE (s)-[r:SEMANTIC {graphmem_active: row.key}]->(t)
ON CREATE SET r.graphmem_id = row.id, r.scope = $scope, r.relation = row.relation, r.fact = row.fact, r.confidence = 1.0
"""
TRACED: LiteralString = """
UNWIND $rows AS row
MERGE (p:Graphmem:Episode {scope: $scope, external_key: row.source})
ON CREATE SET p.id = row.episode_id, p.external_id = row.source, p.source = 'triple', p.text = row.fact,
    p.occurred_at = $now, p.recorded_at = $now, p.processed_at = $now
MERGE (s:Graphmem:Entity {scope: $scope, canonical_name: row.subject, entity_type: 'concept'})
ON CREATE SET s.id = row.subject_id, s.name = row.subject_name, s.name_words = row.subject_words, s.confidence = 1.0,
    s.first_seen_at = $now, s.last_seen_at = $now, s.recorded_at = $now
MERGE (t:Graphmem:Entity {scope: $scope, canonical_name: row.object, entity_type: 'concept'})
ON CREATE SET t.id = row.object_id, t.name = row.object_name, t.name_words = row.object_words, t.confidence = 1.0,
    t.first_seen_at = $now, t.last_seen_at = $now, t.recorded_at = $now
MERGE (s)-[r:SEMANTIC {graphmem_active: row.key}]->(t)
ON CREATE SET r.graphmem_id = row.id, r.scope = $scope, r.relation = row.relation, r.fact = row.fact,
    r.confidence = 1.0, r.valid_from = $now, r.recorded_at = $now, r.episode_ids = [p.id], r.retrieval_count = 0.0
MERGE (p)-[:MENTIONS]->(s)
MERGE (p)-[:MENTIONS]->(t)
"""
TWO_HOPS: LiteralString = """
MATCH (seed:Graphmem {id: $id})
CALL (seed) {
    MATCH (seed)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]-(o:Graphmem)
    WHERE r.valid_to IS NULL
    RETURN r, o ORDER BY r.confidence DESC, r.graphmem_id LIMIT $first
}
WITH seed, collect(r) AS near, collect(DISTINCT o) AS others
CALL (others) {
    UNWIND others AS n
    CALL (n) {
        MATCH (n)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]-(:Graphmem)
        WHERE r.valid_to IS NULL
        RETURN r ORDER BY r.confidence DESC, r.graphmem_id LIMIT $second
    }
    RETURN collect(r) AS far
}
UNWIND near + far AS r
WITH DISTINCT r
RETURN r.graphmem_id, startNode(r).id, endNode(r).id, startNode(r).name, endNode(r).name, startNode(r).entity_type,
    endNode(r).entity_type, r.relation, type(r), r.fact, r.confidence, r.retrieval_count, toString(r.valid_from)
"""
NEAR: LiteralString = """
MATCH (:Graphmem {id: $id})-[:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]-(o:Graphmem) RETURN DISTINCT o.id"""
_ENTITIES: LiteralString = """
UNWIND $rows AS row
CREATE (e:Graphmem:Entity {
    id: row[0], name: row[1], canonical_name: row[2], entity_type: row[3], name_words: row[4], summary_words: '',
    summary: '', scope: $scope.key, domain: $scope.domain, confidence: 1.0, access_count: 0,
    first_seen_at: $start, last_seen_at: $start, recorded_at: $start})
CREATE (:Graphmem:Alias {scope: $scope.key, alias: row[2], entity_type: row[3], entity_id: row[0]})
"""
_FACTS: LiteralString = """
WITH [day IN range(0, 699) | $start + duration({days: day})] AS days
UNWIND $rows AS row
MATCH (s:Graphmem {id: row[0]})
MATCH (t:Graphmem {id: row[1]})
CREATE (s)-[:$(row[2]) {
    graphmem_id: row[3], graphmem_active: row[0] + ' ' + row[1] + ' ' + row[4], scope: $scope.key, relation: row[4],
    fact: row[5], confidence: row[6], valid_from: days[row[7]], recorded_at: days[row[7]], episode_ids: [],
    retrieval_count: 0.0, graphmem_source: row[0], graphmem_target: row[1], graphmem_rank: -row[6]}]->(t)
"""
_CHUNK = 5000


def rows_of(triples: Sequence[dict[str, str]], scope: Scope) -> list[dict[str, str]]:
    """Return triples as `STATED` and `TRACED` take them."""
    rows: list[dict[str, str]] = []
    for triple in triples:
        subject, relation, target = triple["subject"], triple["relation"], triple["object"]
        rows.append(
            {
                "id": new_id(),
                "subject_id": new_id(),
                "object_id": new_id(),
                "episode_id": new_id(),
                "subject": subject.lower(),
                "object": target.lower(),
                "subject_name": subject,
                "object_name": target,
                "subject_words": scoped_words(scope, subject),
                "object_words": scoped_words(scope, target),
                "relation": relation,
                "fact": f"{subject} {relation} {target}",
                "key": f"{scope.key}|{subject}|{relation}|{target}".lower(),
                "source": triple["source"],
            }
        )
    return rows


def merge(driver: Driver, text: LiteralString, scope: Scope, rows: Sequence[dict[str, str]]) -> None:
    """Merge rows in one transaction."""
    _run(driver, text, rows, scope=scope.key, now=utc_now())


def _run(driver: Driver, text: LiteralString, rows: Sequence[Any], **values: Any) -> None:
    with driver.session() as session:  # pyright: ignore[reportUnknownMemberType]
        session.execute_write(lambda transaction: transaction.run(text, {"rows": rows, **values}).consume())


def build(driver: Driver, url: str, scope: Scope, count: int) -> world.World:
    """Write a graph of `count` edges with plain Cypher: what is measured later is reading it."""
    graph = world.Graph.of(count)
    start = world.BEGUN
    values: dict[str, Any] = {"scope": {"key": scope.key, "domain": scope.domain}, "start": start}
    entities = (
        [graph.ids[i], name, name.lower(), world.KINDS[i % len(world.KINDS)], scoped_words(scope, name)]
        for i, name in enumerate(graph.names)
    )
    types = {kind.value: kind.name for kind in EdgeType}
    facts = (
        [
            graph.ids[fact.source],
            graph.ids[fact.target],
            types[fact.edge_type],
            fact.id,
            fact.relation,
            fact.fact,
            fact.confidence,
            (fact.begun - world.START) // world.DAY,
        ]
        for fact in graph.facts()
    )
    for chunk in _chunks(entities):
        _run(driver, _ENTITIES, chunk, **values)
    for chunk in _chunks(facts):
        _run(driver, _FACTS, chunk, **values)
    return graph.world(url, scope)


def _chunks(rows: Iterator[list[Any]]) -> Iterator[list[list[Any]]]:
    chunk: list[list[Any]] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == _CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
