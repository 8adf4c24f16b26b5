// 20 What was inferred
// Inferred facts of an entity that hold now, each with the facts that it follows from. A picture.
// :param scope => 'default'
// :param name => 'Maya Chen'
MATCH (a:Graphmem {scope: $scope, canonical_name: toLower(normalize(trim($name), NFKC))})
WHERE a.entity_type IS NOT NULL
MATCH (x:Graphmem {id: coalesce(a.entity_id, a.id)})
MATCH (x)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]-(other:Graphmem)
WHERE r.kind = 'inferred' AND (r.valid_to IS NULL OR (r.valid_to > datetime() AND r.valid_to > r.valid_from))
WITH x, r, other ORDER BY r.confidence DESC, r.graphmem_id LIMIT 12
UNWIND [x, other] AS end
MATCH (end)-[premise:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]-(further:Graphmem)
WHERE r.properties CONTAINS premise.graphmem_id
RETURN x, r, other, premise, further
