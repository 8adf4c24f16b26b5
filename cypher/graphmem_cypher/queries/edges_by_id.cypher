// A page of the facts with the given ids.
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
WITH s, r, t
WHERE /* include edge_filters */
/* include edge_page */
