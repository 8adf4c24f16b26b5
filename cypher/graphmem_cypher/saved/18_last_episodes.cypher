// 18 The last episodes and whom they mention
// The newest twelve episodes of a scope, each with up to 25 of the entities that it names. A picture.
// :param scope => 'default'
MATCH (p:Episode)
USING INDEX SEEK p:Episode(scope, id)
WHERE p.scope = $scope AND p.id > '' AND p:Graphmem
WITH p ORDER BY p.id DESC LIMIT 12
CALL (p) {
    OPTIONAL MATCH (p)-[m:MENTIONS]->(e:Graphmem)
    RETURN m, e LIMIT 25
}
RETURN p, m, e
