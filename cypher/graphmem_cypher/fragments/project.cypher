// A node without a label in seed starts with a label of its own, from free upwards. These labels are shuffled (by an odd
// factor modulo 65,536), because the smallest of labels with equal weight wins: in the order in which GDS visits the
// nodes, the first label would flood the graph. They are small, because GDS reserves memory up to the highest one.
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
