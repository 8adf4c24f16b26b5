// Entities with the number of their visible facts, at most the 1,000 most confident ones, and of their types.
UNWIND $q.ids AS id
MATCH (e:Graphmem {id: id})
WHERE e.scope IN $q.scopes
WITH e, COUNT { (e)--() } > 1000 AS is_hub
OPTIONAL CALL (e, is_hub) {
    MATCH (e)-[r:/* include types */]-(:Graphmem)
    WHERE NOT is_hub AND r.graphmem_id IS NOT NULL AND /* include edge_is_visible */
    RETURN r
    UNION ALL
    UNWIND CASE WHEN is_hub THEN [e.id] ELSE [] END AS id
    /* include ranked_edges */
    RETURN r ORDER BY r.graphmem_rank, r.graphmem_id LIMIT $q.per_node
}
WITH e, count(r) AS degree, count(DISTINCT type(r)) AS edge_types
RETURN [degree, edge_types, /* include entity_row */] AS row
