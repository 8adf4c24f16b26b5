// 04 As of a date: what was true of it then
// The facts of an entity that held at the start of a day (UTC), by all that is known today. A picture.
// :param scope => 'default'
// :param name => 'Maya Chen'
// :param date => '2026-01-31'
MATCH (a:Graphmem {scope: $scope, canonical_name: toLower(normalize(trim($name), NFKC))})
WHERE a.entity_type IS NOT NULL
MATCH (x:Graphmem {id: coalesce(a.entity_id, a.id)})
OPTIONAL MATCH (x)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]-(other:Graphmem)
WHERE r.valid_from <= datetime($date) AND (r.valid_to IS NULL OR toString(r.valid_to) > toString(datetime($date)))
RETURN x, r, other
ORDER BY r.confidence DESC, r.graphmem_id DESC LIMIT 100
