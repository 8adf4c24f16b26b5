// A node that has no label in seed begins with one of its own, from free on. They are shuffled (an odd factor modulo
// 65,536 does that) and small (GDS reserves memory up to the highest): of labels that weigh the same the smallest wins,
// and in the order in which GDS visits the nodes the first would flood the graph.
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
