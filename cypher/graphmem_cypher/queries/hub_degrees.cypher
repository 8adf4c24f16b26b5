// The number of visible facts of hubs, at most the 1,000 most confident ones, and of their types.
UNWIND $q.ids AS id
OPTIONAL CALL (id) {
    /* include ranked_edges */
    RETURN r ORDER BY r.graphmem_rank, r.graphmem_id LIMIT $q.per_node
}
WITH id, count(r) AS degree, count(DISTINCT type(r)) AS edge_types
RETURN [id, degree, edge_types] AS row
