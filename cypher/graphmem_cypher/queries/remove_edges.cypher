// Delete facts of a scope with their rows in recall traces; return their ids.
/* include find_edges */
WITH r.graphmem_id AS id, r
WHERE r.scope = $q.scope
CALL (id) {
    MATCH (:Graphmem)-[a:ACTIVATED {fact_id: id}]->(:Graphmem)
    DELETE a
}
DELETE r
RETURN id AS row
