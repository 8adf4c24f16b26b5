// 14 Communities and their bridges
// The largest communities, their members, and the facts that lead from one community into another. A picture.
// :param scope => 'default'
MATCH (c:Community)
USING INDEX SEEK c:Community(scope, id)
WHERE c.scope = $scope AND c.id > '' AND c:Graphmem AND c.level = 0 AND c.ended_at IS NULL
WITH c, COUNT { (c)<-[m:IN_COMMUNITY WHERE m.until IS NULL]-() } AS size
ORDER BY size DESC, c.id LIMIT 8
MATCH (c)<-[m:IN_COMMUNITY WHERE m.until IS NULL]-(e:Entity)
OPTIONAL MATCH (e)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY]-(f:Entity)
WHERE r.graphmem_id IS NOT NULL AND (r.valid_to IS NULL OR (r.valid_to > datetime() AND r.valid_to > r.valid_from))
    AND EXISTS { (f)-[n:IN_COMMUNITY WHERE n.until IS NULL]->(d:Community) WHERE d.level = 0 AND d <> c }
RETURN c, m, e, r, f LIMIT 300
