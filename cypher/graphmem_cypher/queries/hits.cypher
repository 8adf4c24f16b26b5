// Entities with how many visible facts they have, counted over the 1,000 most confident ones, and of how many types.
UNWIND $q.ids AS id
MATCH (e:Graphmem {id: id})
WHERE e.scope IN $q.scopes
CALL (e) {
    MATCH (e)-[r:/* include types */]-(:Graphmem)
    WHERE r.graphmem_id IS NOT NULL AND (r.valid_to IS NULL OR (r.valid_to > $q.now AND r.valid_to > r.valid_from))
    WITH r ORDER BY r.confidence DESC, r.graphmem_id LIMIT 1000
    RETURN count(r) AS degree, count(DISTINCT type(r)) AS edge_types
}
RETURN [degree, edge_types, /* include entity_row */] AS row
