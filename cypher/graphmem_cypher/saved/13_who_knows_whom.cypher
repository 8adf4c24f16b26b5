// 13 Who knows whom
// Facts from person to person that hold now. A picture.
// :param scope => 'default'
MATCH (p:Entity)
USING INDEX SEEK p:Entity(scope, id)
WHERE p.scope = $scope AND p.id > '' AND p:Graphmem AND p:Person
MATCH (p)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]->(q:Graphmem&Person)
WHERE r.graphmem_id IS NOT NULL AND (r.valid_to IS NULL OR (r.valid_to > datetime() AND r.valid_to > r.valid_from))
RETURN p, r, q LIMIT 200
