CALL () {
    MATCH (s:Graphmem)-[r:SEMANTIC]->(t:Graphmem)
    USING INDEX r:SEMANTIC(scope, graphmem_id)
    WHERE r.scope = $q.scope AND /* include edge_is_live */
    RETURN s, t, r.confidence AS confidence ORDER BY r.scope, r.graphmem_id
    UNION ALL
    MATCH (s:Graphmem)-[r:TEMPORAL]->(t:Graphmem)
    USING INDEX r:TEMPORAL(scope, graphmem_id)
    WHERE r.scope = $q.scope AND /* include edge_is_live */
    RETURN s, t, r.confidence AS confidence ORDER BY r.scope, r.graphmem_id
    UNION ALL
    MATCH (s:Graphmem)-[r:CAUSAL]->(t:Graphmem)
    USING INDEX r:CAUSAL(scope, graphmem_id)
    WHERE r.scope = $q.scope AND /* include edge_is_live */
    RETURN s, t, r.confidence AS confidence ORDER BY r.scope, r.graphmem_id
    UNION ALL
    MATCH (s:Graphmem)-[r:ENTITY]->(t:Graphmem)
    USING INDEX r:ENTITY(scope, graphmem_id)
    WHERE r.scope = $q.scope AND /* include edge_is_live */
    RETURN s, t, r.confidence AS confidence ORDER BY r.scope, r.graphmem_id
    UNION ALL
    MATCH (s:Graphmem)-[r:CO_OCCURRENCE]->(t:Graphmem)
    USING INDEX r:CO_OCCURRENCE(scope, graphmem_id)
    WHERE r.scope = $q.scope AND /* include edge_is_live */
    RETURN s, t, r.confidence AS confidence ORDER BY r.scope, r.graphmem_id
}
