// A page of the facts of some scopes: the first ones of each type, then of those.
UNWIND $q.scopes AS scope
CALL (scope) {
    MATCH (s:Graphmem)-[r:SEMANTIC]->(t:Graphmem)
    USING INDEX r:SEMANTIC(scope, graphmem_id)
    WHERE r.scope = scope AND /* include edge_filters */
    RETURN s, r, t ORDER BY r.scope, r.graphmem_id LIMIT $q.limit
    UNION ALL
    MATCH (s:Graphmem)-[r:TEMPORAL]->(t:Graphmem)
    USING INDEX r:TEMPORAL(scope, graphmem_id)
    WHERE r.scope = scope AND /* include edge_filters */
    RETURN s, r, t ORDER BY r.scope, r.graphmem_id LIMIT $q.limit
    UNION ALL
    MATCH (s:Graphmem)-[r:CAUSAL]->(t:Graphmem)
    USING INDEX r:CAUSAL(scope, graphmem_id)
    WHERE r.scope = scope AND /* include edge_filters */
    RETURN s, r, t ORDER BY r.scope, r.graphmem_id LIMIT $q.limit
    UNION ALL
    MATCH (s:Graphmem)-[r:ENTITY]->(t:Graphmem)
    USING INDEX r:ENTITY(scope, graphmem_id)
    WHERE r.scope = scope AND /* include edge_filters */
    RETURN s, r, t ORDER BY r.scope, r.graphmem_id LIMIT $q.limit
    UNION ALL
    MATCH (s:Graphmem)-[r:CO_OCCURRENCE]->(t:Graphmem)
    USING INDEX r:CO_OCCURRENCE(scope, graphmem_id)
    WHERE r.scope = scope AND /* include edge_filters */
    RETURN s, r, t ORDER BY r.scope, r.graphmem_id LIMIT $q.limit
}
/* include edge_page */
