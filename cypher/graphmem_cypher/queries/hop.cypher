// Of each node of a frontier its best visible facts, with the node at the other end.
UNWIND $q.frontier AS id
MATCH (n:Graphmem {id: id})
CALL (n) {
    MATCH (n)-[r:/* include types */]-(o:Graphmem)
    WHERE type(r) IN $q.types AND r.graphmem_id IS NOT NULL AND /* include edge_is_visible */
    RETURN r, o ORDER BY r.confidence DESC, r.graphmem_id LIMIT $q.per_node
}
RETURN [r.graphmem_id, startNode(r) = n, n.id, r.relation, type(r), r.fact, r.confidence, r.retrieval_count,
    toString(r.valid_from), o.id, o.name, o.entity_type, o.archived_at IS NULL] AS row
