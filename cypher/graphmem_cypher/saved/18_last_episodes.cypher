// 18 The last episodes and whom they mention
// The newest twelve episodes of a scope with the entities that they name. A picture.
// :param scope => 'default'
MATCH (p:Episode)
USING INDEX SEEK p:Episode(scope, id)
WHERE p.scope = $scope AND p.id > '' AND p:Graphmem
WITH p ORDER BY p.id DESC LIMIT 12
OPTIONAL MATCH (p)-[m:MENTIONS]->(e:Graphmem)
RETURN p, m, e
