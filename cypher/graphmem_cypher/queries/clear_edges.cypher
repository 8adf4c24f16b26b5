// Delete a batch of the facts of a scope.
CALL () {
    MATCH (:Graphmem)-[r:SEMANTIC]->(:Graphmem)
    USING INDEX r:SEMANTIC(scope, graphmem_id)
    WHERE r.scope = $q.scope AND r.graphmem_id > ''
    RETURN r LIMIT $q.limit
    UNION ALL
    MATCH (:Graphmem)-[r:TEMPORAL]->(:Graphmem)
    USING INDEX r:TEMPORAL(scope, graphmem_id)
    WHERE r.scope = $q.scope AND r.graphmem_id > ''
    RETURN r LIMIT $q.limit
    UNION ALL
    MATCH (:Graphmem)-[r:CAUSAL]->(:Graphmem)
    USING INDEX r:CAUSAL(scope, graphmem_id)
    WHERE r.scope = $q.scope AND r.graphmem_id > ''
    RETURN r LIMIT $q.limit
    UNION ALL
    MATCH (:Graphmem)-[r:ENTITY]->(:Graphmem)
    USING INDEX r:ENTITY(scope, graphmem_id)
    WHERE r.scope = $q.scope AND r.graphmem_id > ''
    RETURN r LIMIT $q.limit
    UNION ALL
    MATCH (:Graphmem)-[r:CO_OCCURRENCE]->(:Graphmem)
    USING INDEX r:CO_OCCURRENCE(scope, graphmem_id)
    WHERE r.scope = $q.scope AND r.graphmem_id > ''
    RETURN r LIMIT $q.limit
}
WITH r LIMIT $q.limit
DELETE r
RETURN count(*) AS row
