// 12 The most connected
// The twenty entities with the most facts, ended ones counted too, and the facts among them that hold now. A picture.
// :param scope => 'default'
MATCH (e:Entity) WHERE e.scope = $scope AND e.id > ''
WITH e, COUNT { (e)-[:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]-() } AS facts
ORDER BY facts DESC, e.id LIMIT 20
WITH collect(e) AS top
UNWIND top AS e
OPTIONAL MATCH (e)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]->(other:Graphmem)
WHERE other IN top AND (r.valid_to IS NULL OR (r.valid_to > datetime() AND r.valid_to > r.valid_from))
RETURN e, r, other
