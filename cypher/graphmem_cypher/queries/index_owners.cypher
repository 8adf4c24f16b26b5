// Of rows that index entries name, those that are in the scope.
UNWIND $q.nodes AS id
MATCH (n:Graphmem {id: id})
WHERE n.scope = $q.scope
RETURN id AS row
UNION ALL
UNWIND $q.edges AS id
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
WITH r, id WHERE r.scope = $q.scope
RETURN id AS row
