// Entities with the numbers of their visible facts and of the types of these; of a hub null and 0 (see hub_degrees).
UNWIND $q.ids AS id
MATCH (e:Graphmem {id: id}) USING INDEX SEEK e:Graphmem(id)
WHERE e.scope IN $q.scopes
WITH e, COUNT { (e)--() } > 1000 AS is_hub
OPTIONAL CALL (e, is_hub) {
    MATCH (e)-[r:/* include types */]-(:Graphmem)
    WHERE NOT is_hub AND r.graphmem_id IS NOT NULL
        /* include edge_is_visible */
    RETURN r
}
WITH e, is_hub, count(r) AS degree, count(DISTINCT type(r)) AS edge_types
RETURN [CASE WHEN is_hub THEN null ELSE degree END, edge_types, /* include entity_row */] AS row
