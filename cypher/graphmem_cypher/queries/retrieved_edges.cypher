// A page of the facts of a scope that were retrieved, of all versions.
CALL () {
    MATCH (:Graphmem)-[r:SEMANTIC]->(:Graphmem)
    USING INDEX r:SEMANTIC(scope, graphmem_id)
    WHERE r.scope = $q.scope AND r.graphmem_id > $q.after AND r.retrieval_count > 0
    RETURN r ORDER BY r.scope, r.graphmem_id LIMIT $q.limit
    UNION ALL
    MATCH (:Graphmem)-[r:TEMPORAL]->(:Graphmem)
    USING INDEX r:TEMPORAL(scope, graphmem_id)
    WHERE r.scope = $q.scope AND r.graphmem_id > $q.after AND r.retrieval_count > 0
    RETURN r ORDER BY r.scope, r.graphmem_id LIMIT $q.limit
    UNION ALL
    MATCH (:Graphmem)-[r:CAUSAL]->(:Graphmem)
    USING INDEX r:CAUSAL(scope, graphmem_id)
    WHERE r.scope = $q.scope AND r.graphmem_id > $q.after AND r.retrieval_count > 0
    RETURN r ORDER BY r.scope, r.graphmem_id LIMIT $q.limit
    UNION ALL
    MATCH (:Graphmem)-[r:ENTITY]->(:Graphmem)
    USING INDEX r:ENTITY(scope, graphmem_id)
    WHERE r.scope = $q.scope AND r.graphmem_id > $q.after AND r.retrieval_count > 0
    RETURN r ORDER BY r.scope, r.graphmem_id LIMIT $q.limit
    UNION ALL
    MATCH (:Graphmem)-[r:CO_OCCURRENCE]->(:Graphmem)
    USING INDEX r:CO_OCCURRENCE(scope, graphmem_id)
    WHERE r.scope = $q.scope AND r.graphmem_id > $q.after AND r.retrieval_count > 0
    RETURN r ORDER BY r.scope, r.graphmem_id LIMIT $q.limit
}
RETURN [r.graphmem_id, r.retrieval_count, toString(r.last_retrieved_at)] AS row ORDER BY r.graphmem_id LIMIT $q.limit
