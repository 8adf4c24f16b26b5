// Delete facts of a scope with their rows in recall traces; return their ids.
UNWIND $q.ids AS id
/* include find_edge */
WITH id, r
WHERE r.scope = $q.scope
CALL (id) {
    MATCH (:Graphmem)-[a:ACTIVATED {fact_id: id}]->(:Graphmem)
    DELETE a
}
DELETE r
RETURN id AS row
