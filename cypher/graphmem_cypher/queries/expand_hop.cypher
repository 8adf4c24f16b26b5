// The best visible facts of each node of a frontier, with the node at the other end; of a hub only its id.
// Hubs have a query of their own, whose plan takes the server a second.
UNWIND $q.frontier AS id
MATCH (n:Graphmem {id: id}) USING INDEX SEEK n:Graphmem(id)
WITH n, COUNT { (n)--() } > 1000 AS is_hub
CALL (n, is_hub) {
    MATCH (n)-[r:/* include types */]-(o:Graphmem)
    WHERE NOT is_hub AND r.graphmem_id IS NOT NULL AND type(r) IN $q.types
        /* include edge_is_visible */
    RETURN /* include hop_row */ AS row ORDER BY r.confidence DESC, r.graphmem_id LIMIT $q.per_node
    UNION ALL
    UNWIND CASE WHEN is_hub THEN [n.id] ELSE [] END AS hub
    RETURN [hub] AS row
}
RETURN row
