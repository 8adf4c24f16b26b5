CALL () {
    MATCH (:Graphmem)-[r:SEMANTIC]->(:Graphmem) USING INDEX r:SEMANTIC(graphmem_id) WHERE r.graphmem_id IN $q.ids RETURN r
    UNION ALL
    MATCH (:Graphmem)-[r:TEMPORAL]->(:Graphmem) USING INDEX r:TEMPORAL(graphmem_id) WHERE r.graphmem_id IN $q.ids RETURN r
    UNION ALL
    MATCH (:Graphmem)-[r:CAUSAL]->(:Graphmem) USING INDEX r:CAUSAL(graphmem_id) WHERE r.graphmem_id IN $q.ids RETURN r
    UNION ALL
    MATCH (:Graphmem)-[r:ENTITY]->(:Graphmem) USING INDEX r:ENTITY(graphmem_id) WHERE r.graphmem_id IN $q.ids RETURN r
    UNION ALL
    MATCH (:Graphmem)-[r:CO_OCCURRENCE]->(:Graphmem) USING INDEX r:CO_OCCURRENCE(graphmem_id) WHERE r.graphmem_id IN $q.ids RETURN r
}
