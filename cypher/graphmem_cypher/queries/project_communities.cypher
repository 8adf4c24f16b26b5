// Projects the active facts between the live entities of a scope for GDS, undirected.
// A node that has no label in seed begins with one of its own, from free on. They are shuffled (an odd factor modulo
// 65,536 does that) and small (GDS reserves memory up to the highest): of labels that weigh the same the smallest wins,
// and in the order in which GDS visits the nodes the first would flood the graph.
CALL () {
    MATCH (s:Graphmem)-[r:SEMANTIC]->(t:Graphmem)
    USING INDEX r:SEMANTIC(scope, graphmem_id)
    WHERE r.scope = $q.scope AND /* include edge_is_live */
    RETURN s, t, r.confidence AS confidence ORDER BY r.scope, r.graphmem_id
    UNION ALL
    MATCH (s:Graphmem)-[r:TEMPORAL]->(t:Graphmem)
    USING INDEX r:TEMPORAL(scope, graphmem_id)
    WHERE r.scope = $q.scope AND /* include edge_is_live */
    RETURN s, t, r.confidence AS confidence ORDER BY r.scope, r.graphmem_id
    UNION ALL
    MATCH (s:Graphmem)-[r:CAUSAL]->(t:Graphmem)
    USING INDEX r:CAUSAL(scope, graphmem_id)
    WHERE r.scope = $q.scope AND /* include edge_is_live */
    RETURN s, t, r.confidence AS confidence ORDER BY r.scope, r.graphmem_id
    UNION ALL
    MATCH (s:Graphmem)-[r:ENTITY]->(t:Graphmem)
    USING INDEX r:ENTITY(scope, graphmem_id)
    WHERE r.scope = $q.scope AND /* include edge_is_live */
    RETURN s, t, r.confidence AS confidence ORDER BY r.scope, r.graphmem_id
    UNION ALL
    MATCH (s:Graphmem)-[r:CO_OCCURRENCE]->(t:Graphmem)
    USING INDEX r:CO_OCCURRENCE(scope, graphmem_id)
    WHERE r.scope = $q.scope AND /* include edge_is_live */
    RETURN s, t, r.confidence AS confidence ORDER BY r.scope, r.graphmem_id
}
WITH s, t, CASE WHEN confidence > $q.min_weight THEN confidence ELSE $q.min_weight END AS weight
WITH gds.graph.project(
    $q.graph, s, t,
    {
        sourceNodeProperties: {seed: coalesce($q.seed[s.id], $q.free + id(s) / 65536 * 65536 + id(s) * 40503 % 65536)},
        targetNodeProperties: {seed: coalesce($q.seed[t.id], $q.free + id(t) / 65536 * 65536 + id(t) * 40503 % 65536)},
        relationshipProperties: {weight: weight}
    },
    {undirectedRelationshipTypes: ['*'], readConcurrency: 1}
) AS projected
RETURN projected.nodeCount AS nodes
