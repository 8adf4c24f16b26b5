// Count one retrieval of each fact and one access of each of its ends.
UNWIND $q.ids AS id
CALL (id) {
    MATCH (s:Graphmem)-[r:SEMANTIC {graphmem_id: id}]->(t:Graphmem) RETURN s, r, t
    UNION ALL
    MATCH (s:Graphmem)-[r:TEMPORAL {graphmem_id: id}]->(t:Graphmem) RETURN s, r, t
    UNION ALL
    MATCH (s:Graphmem)-[r:CAUSAL {graphmem_id: id}]->(t:Graphmem) RETURN s, r, t
    UNION ALL
    MATCH (s:Graphmem)-[r:ENTITY {graphmem_id: id}]->(t:Graphmem) RETURN s, r, t
    UNION ALL
    MATCH (s:Graphmem)-[r:CO_OCCURRENCE {graphmem_id: id}]->(t:Graphmem) RETURN s, r, t
}
WITH s, r, t WHERE r.scope IN $q.scopes
SET r.retrieval_count = r.retrieval_count + 1.0, r.last_retrieved_at = $q.at
WITH s, t
UNWIND [s, t] AS e
WITH e, count(*) AS times
SET e.access_count = e.access_count + times
RETURN count(e) AS row
