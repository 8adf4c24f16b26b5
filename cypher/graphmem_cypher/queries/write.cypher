// Store what a write brings, once all of it was found right; a time is a position in the list of times.
WITH [text IN $q.times | datetime(text)] AS times
CALL (times) {
    UNWIND $q.replaced AS row
    MATCH (e:Graphmem {id: row[0]})
    REMOVE e:$(row[17])
    SET e:$(row[16])
    SET e += /* include entity_values */
}
CALL (times) {
    UNWIND $q.entities AS row
    CREATE (e:Graphmem:Entity:$(row[16]) /* include entity_values */)
}
CALL () {
    UNWIND $q.aliases AS row
    MERGE (a:Graphmem {scope: $q.scope, alias: row[0], entity_type: row[1]})
    ON CREATE SET a:Alias
    SET a.entity_id = row[2]
}
CALL (times) {
    UNWIND $q.edges AS row
    MATCH (s:Graphmem {id: row[0]})
    MATCH (t:Graphmem {id: row[1]})
    CREATE (s)-[:$(row[2]) {
        graphmem_id: row[3], graphmem_active: row[4], scope: $q.scope, relation: row[5], fact: row[6],
        confidence: row[7], superseded_by: row[8], episode_ids: row[9], retrieval_count: row[10], properties: row[11],
        valid_from: times[row[12]], valid_to: times[row[13]], recorded_at: times[row[14]], expired_at: times[row[15]],
        last_retrieved_at: times[row[16]],
        graphmem_source: row[0], graphmem_target: row[1], graphmem_rank: -row[7]}]->(t)
}
CALL (times) {
    UNWIND $q.first_mentions AS row
    MATCH (p:Graphmem {id: row[0]})
    MATCH (e:Graphmem {id: row[1]})
    CREATE (p)-[:MENTIONS {surface: row[2], confidence: row[3], seen_at: times[row[4]]}]->(e)
}
CALL (times) {
    UNWIND $q.mentions AS row
    MATCH (p:Graphmem {id: row[0]})
    MATCH (e:Graphmem {id: row[1]})
    MERGE (p)-[m:MENTIONS]->(e)
    ON CREATE SET m.surface = row[2], m.confidence = row[3], m.seen_at = times[row[4]]
}
CALL (times) {
    UNWIND $q.outcomes AS row
    MATCH (e:Graphmem {id: row[0]})
    SET e.processed_at = times[row[1]], e.retry_at = times[row[2]], e.error = row[3], e.attempts = row[4],
        e.queue = row[5], e.claimed_by = null, e.claimed_until = null
}
RETURN true AS row
