// Ids of the facts of a scope stated by some episodes, in all versions.
CALL () {
    MATCH (:Graphmem)-[r:SEMANTIC]->(:Graphmem)
    USING INDEX r:SEMANTIC(scope, graphmem_id)
    WHERE r.scope = $q.scope AND r.graphmem_id > '' AND any(id IN r.episode_ids WHERE id IN $q.ids)
    RETURN r
    UNION ALL
    MATCH (:Graphmem)-[r:TEMPORAL]->(:Graphmem)
    USING INDEX r:TEMPORAL(scope, graphmem_id)
    WHERE r.scope = $q.scope AND r.graphmem_id > '' AND any(id IN r.episode_ids WHERE id IN $q.ids)
    RETURN r
    UNION ALL
    MATCH (:Graphmem)-[r:CAUSAL]->(:Graphmem)
    USING INDEX r:CAUSAL(scope, graphmem_id)
    WHERE r.scope = $q.scope AND r.graphmem_id > '' AND any(id IN r.episode_ids WHERE id IN $q.ids)
    RETURN r
    UNION ALL
    MATCH (:Graphmem)-[r:ENTITY]->(:Graphmem)
    USING INDEX r:ENTITY(scope, graphmem_id)
    WHERE r.scope = $q.scope AND r.graphmem_id > '' AND any(id IN r.episode_ids WHERE id IN $q.ids)
    RETURN r
    UNION ALL
    MATCH (:Graphmem)-[r:CO_OCCURRENCE]->(:Graphmem)
    USING INDEX r:CO_OCCURRENCE(scope, graphmem_id)
    WHERE r.scope = $q.scope AND r.graphmem_id > '' AND any(id IN r.episode_ids WHERE id IN $q.ids)
    RETURN r
}
RETURN r.graphmem_id AS row ORDER BY r.graphmem_id
