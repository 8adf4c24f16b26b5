CALL (id) {
    MATCH (:Graphmem)-[r:SEMANTIC {graphmem_id: id}]->(:Graphmem) RETURN r
    UNION ALL
    MATCH (:Graphmem)-[r:TEMPORAL {graphmem_id: id}]->(:Graphmem) RETURN r
    UNION ALL
    MATCH (:Graphmem)-[r:CAUSAL {graphmem_id: id}]->(:Graphmem) RETURN r
    UNION ALL
    MATCH (:Graphmem)-[r:ENTITY {graphmem_id: id}]->(:Graphmem) RETURN r
    UNION ALL
    MATCH (:Graphmem)-[r:CO_OCCURRENCE {graphmem_id: id}]->(:Graphmem) RETURN r
}
