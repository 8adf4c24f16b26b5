// The best visible facts of each node of a frontier, with the node at the other end.
UNWIND $q.frontier AS id
MATCH (n:Graphmem {id: id})
WITH n, COUNT { (n)--() } > 1000 AS is_hub
CALL (n, is_hub) {
    MATCH (n)-[r:/* include types */]-(o:Graphmem)
    WHERE NOT is_hub AND r.graphmem_id IS NOT NULL AND type(r) IN $q.types AND /* include edge_is_visible */
    RETURN r, o ORDER BY r.confidence DESC, r.graphmem_id LIMIT $q.per_node
    UNION ALL
    UNWIND CASE WHEN is_hub THEN [n.id] ELSE [] END AS id
    /* include ranked_edges */
    RETURN r, o ORDER BY r.graphmem_rank, r.graphmem_id LIMIT $q.per_node
}
RETURN [r.graphmem_id, startNode(r) = n, n.id, r.relation, type(r), r.fact, r.confidence, r.retrieval_count,
    toString(r.valid_from), o.id, o.name, o.entity_type, o.archived_at IS NULL, coalesce(r.kind, '') = 'inferred',
    type(r)] AS row
