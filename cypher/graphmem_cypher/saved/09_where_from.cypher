// 09 Where do we have it from
// The newest facts of an entity that hold now, with the episodes that state them. A picture.
// :param scope => 'default'
// :param name => 'Maya Chen'
MATCH (a:Graphmem {scope: $scope, canonical_name: toLower(normalize(trim($name), NFKC))})
WHERE a.entity_type IS NOT NULL
MATCH (x:Graphmem {id: coalesce(a.entity_id, a.id)})
MATCH (x)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]-(other:Graphmem)
WHERE r.graphmem_id IS NOT NULL AND (r.valid_to IS NULL OR (r.valid_to > datetime() AND r.valid_to > r.valid_from))
WITH x, r, other ORDER BY r.valid_from DESC, r.graphmem_id DESC LIMIT 12
UNWIND r.episode_ids AS episode_id
MATCH (p:Graphmem {id: episode_id})
OPTIONAL MATCH (p)-[m:MENTIONS]->(n:Graphmem) WHERE n IN [x, other]
RETURN x, r, other, p, m
