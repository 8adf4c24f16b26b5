// 02 What do we know about somebody or something
// The facts of an entity that hold now, the most trusted first. A picture.
// :param scope => 'default'
// :param name => 'Maya Chen'
MATCH (a:Graphmem {scope: $scope, canonical_name: toLower(normalize(trim($name), NFKC))})
WHERE a.entity_type IS NOT NULL
MATCH (x:Graphmem {id: coalesce(a.entity_id, a.id)})
OPTIONAL MATCH (x)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]-(other:Graphmem)
WHERE r.graphmem_id IS NOT NULL AND (r.valid_to IS NULL OR (r.valid_to > datetime() AND r.valid_to > r.valid_from))
RETURN x, r, other
ORDER BY r.confidence DESC, r.graphmem_id DESC LIMIT 100
