// 12 The most connected
// The ten entities with the most facts, ended ones counted too, each with some of its facts that hold now. A picture.
// :param scope => 'default'
MATCH (e:Entity)
USING INDEX SEEK e:Entity(scope, id)
WHERE e.scope = $scope AND e.id > '' AND e:Graphmem
WITH e, COUNT { (e)-[f:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE WHERE f.graphmem_id IS NOT NULL]-() } AS facts
ORDER BY facts DESC, e.id LIMIT 10
CALL (e) {
    OPTIONAL MATCH (e)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]-(other:Graphmem)
    WHERE r.graphmem_id IS NOT NULL AND (r.valid_to IS NULL OR (r.valid_to > datetime() AND r.valid_to > r.valid_from))
    RETURN r, other ORDER BY r.confidence DESC, r.graphmem_id DESC LIMIT 10
}
RETURN e, facts, r, other ORDER BY facts DESC, e.id
