// 06 What replaced what
// Facts that were superseded, the latest first, each with the fact that took its place. A picture.
// :param scope => 'default'
MATCH (s:Entity)
USING INDEX SEEK s:Entity(scope, id)
WHERE s.scope = $scope AND s.id > '' AND s:Graphmem
MATCH (s)-[old:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]->(before:Graphmem)
WHERE old.superseded_by IS NOT NULL
WITH s, old, before ORDER BY old.expired_at DESC, old.graphmem_id DESC LIMIT 25
OPTIONAL MATCH (s)-[new:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]->(after:Graphmem)
WHERE new.graphmem_id = old.superseded_by
RETURN s, old, before, new, after
