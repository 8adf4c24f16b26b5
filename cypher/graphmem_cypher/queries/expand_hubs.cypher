// The best visible facts of hubs, with the node at the other end.
UNWIND $q.frontier AS id
MATCH (n:Graphmem {id: id}) USING INDEX SEEK n:Graphmem(id)
CALL (id) {
    /* include ranked_edges */
    RETURN r, o ORDER BY r.graphmem_rank, r.graphmem_id LIMIT $q.per_node
}
RETURN /* include hop_row */ AS row
