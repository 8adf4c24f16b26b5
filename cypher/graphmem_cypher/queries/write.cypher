// Store the rows of a write after it was checked.
// Rows refer to times by their position in the list of times, and to the ends of relationships by their position among
// the nodes: existing nodes first, then new ones.
WITH [text IN $q.times | datetime(text)] AS times
CALL () {
    // alias nodes of names that became the own name of an entity
    UNWIND $q.freed AS row
    MATCH (a:Graphmem {scope: $q.scope, canonical_name: row[0], entity_type: row[1]})
    DELETE a
}
CALL () {
    UNWIND $q.retyped AS row
    MATCH (e:Graphmem {id: row[0]}) USING INDEX SEEK e:Graphmem(id)
    REMOVE e:$(row[1])
    SET e:$(row[2])
}
CALL (times) {
    UNWIND $q.replaced AS row
    MATCH (e:Graphmem {id: row[0]}) USING INDEX SEEK e:Graphmem(id)
    SET e += /* include entity_values */
}
CALL () {
    UNWIND range(0, size($q.nodes) - 1) AS position
    MATCH (n:Graphmem {id: $q.nodes[position]}) USING INDEX SEEK n:Graphmem(id)
    WITH position, n ORDER BY position
    RETURN collect(n) AS there
}
CALL (times) {
    UNWIND range(0, size($q.entities) - 1) AS position
    WITH times, position, $q.entities[position] AS row
    CREATE (e:Graphmem:Entity:$(row[17]) /* include entity_values */)
    WITH position, e ORDER BY position
    RETURN collect(e) AS new
}
WITH times, there + new AS nodes
CALL () {
    UNWIND $q.aliases AS row
    MERGE (a:Graphmem {scope: $q.scope, canonical_name: row[0], entity_type: row[1]})
    ON CREATE SET a:Alias
    SET a.entity_id = CASE WHEN a.id = row[2] THEN null ELSE row[2] END
}
CALL (times, nodes) {
    UNWIND $q.edges AS row
    WITH times, row, nodes[row[0]] AS s, nodes[row[1]] AS t
    CREATE (s)-[:$(row[2]) {
        graphmem_id: row[3], graphmem_active: row[4], scope: $q.scope, relation: row[5], fact: row[6],
        confidence: row[7], superseded_by: row[8], episode_ids: row[9], retrieval_count: row[10], properties: row[11],
        valid_from: times[row[12]], valid_to: times[row[13]], recorded_at: times[row[14]], expired_at: times[row[15]],
        last_retrieved_at: times[row[16]], certainty: row[17], kind: row[18], valid_from_assumed: row[19],
        told_at: times[row[20]], prior_valid_to: times[row[21]], end_reason: row[22],
        ended_by: row[23], end_times: [position IN row[24] | times[position]],
        ends_told_at: [position IN row[25] | times[position]],
        begun_by: row[26], begin_times: [position IN row[27] | times[position]],
        begins_told_at: [position IN row[28] | times[position]],
        graphmem_source: s.id, graphmem_target: t.id, graphmem_rank: -row[7]}]->(t)
}
CALL (times, nodes) {
    UNWIND $q.first_mentions AS row
    WITH times, row, nodes[row[0]] AS p, nodes[row[1]] AS e
    CREATE (p)-[:MENTIONS {surface: row[2], confidence: row[3], seen_at: times[row[4]]}]->(e)
}
CALL (times, nodes) {
    UNWIND $q.mentions AS row
    WITH times, row, nodes[row[0]] AS p, nodes[row[1]] AS e
    MERGE (p)-[m:MENTIONS]->(e)
    ON CREATE SET m.surface = row[2], m.confidence = row[3], m.seen_at = times[row[4]]
}
CALL (times) {
    UNWIND $q.results AS row
    MATCH (e:Graphmem {id: row[0]}) USING INDEX SEEK e:Graphmem(id)
    SET e.processed_at = times[row[1]], e.retry_at = times[row[2]], e.error = row[3], e.attempts = row[4],
        e.queue = row[5], e.claimed_by = null, e.claimed_until = null
}
RETURN true AS row
