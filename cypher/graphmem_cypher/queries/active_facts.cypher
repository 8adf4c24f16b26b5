// A page of the active facts between unarchived entities of a scope: the first ones of each type, then of those.
CALL () {
    MATCH (s:Graphmem)-[r:SEMANTIC]->(t:Graphmem)
    USING INDEX r:SEMANTIC(scope, graphmem_id)
    WHERE r.scope = $q.scope AND r.graphmem_id > $q.after AND /* include edge_is_live */
    RETURN s, r, t ORDER BY r.scope, r.graphmem_id LIMIT $q.limit
    UNION ALL
    MATCH (s:Graphmem)-[r:TEMPORAL]->(t:Graphmem)
    USING INDEX r:TEMPORAL(scope, graphmem_id)
    WHERE r.scope = $q.scope AND r.graphmem_id > $q.after AND /* include edge_is_live */
    RETURN s, r, t ORDER BY r.scope, r.graphmem_id LIMIT $q.limit
    UNION ALL
    MATCH (s:Graphmem)-[r:CAUSAL]->(t:Graphmem)
    USING INDEX r:CAUSAL(scope, graphmem_id)
    WHERE r.scope = $q.scope AND r.graphmem_id > $q.after AND /* include edge_is_live */
    RETURN s, r, t ORDER BY r.scope, r.graphmem_id LIMIT $q.limit
    UNION ALL
    MATCH (s:Graphmem)-[r:ENTITY]->(t:Graphmem)
    USING INDEX r:ENTITY(scope, graphmem_id)
    WHERE r.scope = $q.scope AND r.graphmem_id > $q.after AND /* include edge_is_live */
    RETURN s, r, t ORDER BY r.scope, r.graphmem_id LIMIT $q.limit
    UNION ALL
    MATCH (s:Graphmem)-[r:CO_OCCURRENCE]->(t:Graphmem)
    USING INDEX r:CO_OCCURRENCE(scope, graphmem_id)
    WHERE r.scope = $q.scope AND r.graphmem_id > $q.after AND /* include edge_is_live */
    RETURN s, r, t ORDER BY r.scope, r.graphmem_id LIMIT $q.limit
}
// A beginning without a time zone, written by hand, is one of UTC.
WITH s, r, t, CASE
        WHEN r.valid_from IS :: ZONED DATETIME THEN r.valid_from
        WHEN r.valid_from IS :: DATE THEN datetime({date: r.valid_from, timezone: 'UTC'})
        WHEN r.valid_from IS :: LOCAL DATETIME THEN datetime({datetime: r.valid_from, timezone: 'UTC'})
    END AS begin
RETURN [r.graphmem_id, s.id, t.id, r.confidence, r.retrieval_count,
    coalesce(begin.epochMillis * 1000 + begin.microsecond % 1000, toString(r.valid_from)), type(r)] AS row
ORDER BY r.graphmem_id LIMIT $q.limit
