// Active facts without a complete index entry.
WITH $q.scope AS scope, $q.after AS after
CALL (scope, after) {
    MATCH (:Graphmem)-[r:SEMANTIC]->(:Graphmem)
    USING INDEX r:SEMANTIC(scope, graphmem_id)
    WHERE /* include is_unindexed_fact */
    RETURN r.graphmem_id AS id ORDER BY r.scope, r.graphmem_id LIMIT $q.limit
    UNION ALL
    MATCH (:Graphmem)-[r:TEMPORAL]->(:Graphmem)
    USING INDEX r:TEMPORAL(scope, graphmem_id)
    WHERE /* include is_unindexed_fact */
    RETURN r.graphmem_id AS id ORDER BY r.scope, r.graphmem_id LIMIT $q.limit
    UNION ALL
    MATCH (:Graphmem)-[r:CAUSAL]->(:Graphmem)
    USING INDEX r:CAUSAL(scope, graphmem_id)
    WHERE /* include is_unindexed_fact */
    RETURN r.graphmem_id AS id ORDER BY r.scope, r.graphmem_id LIMIT $q.limit
    UNION ALL
    MATCH (:Graphmem)-[r:ENTITY]->(:Graphmem)
    USING INDEX r:ENTITY(scope, graphmem_id)
    WHERE /* include is_unindexed_fact */
    RETURN r.graphmem_id AS id ORDER BY r.scope, r.graphmem_id LIMIT $q.limit
    UNION ALL
    MATCH (:Graphmem)-[r:CO_OCCURRENCE]->(:Graphmem)
    USING INDEX r:CO_OCCURRENCE(scope, graphmem_id)
    WHERE /* include is_unindexed_fact */
    RETURN r.graphmem_id AS id ORDER BY r.scope, r.graphmem_id LIMIT $q.limit
}
RETURN id AS row ORDER BY id LIMIT $q.limit
