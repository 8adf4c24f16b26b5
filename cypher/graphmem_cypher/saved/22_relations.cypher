// 22 Relations: what the facts are called
// The relations of the scope, with the types of their ends, how many facts hold now, how many don't, and the sentence of
// one. Reads every fact of the scope. A table.
// :param scope => 'default'
MATCH (s:Entity)
USING INDEX SEEK s:Entity(scope, id)
WHERE s.scope = $scope AND s.id > '' AND s:Graphmem
MATCH (s)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]->(t:Graphmem)
WHERE r.graphmem_id IS NOT NULL
WITH r.relation AS relation, type(r) AS type, s.entity_type AS source, t.entity_type AS target, r,
    r.valid_to IS NULL OR (r.valid_to > datetime() AND r.valid_to > r.valid_from) AS holds
WITH relation, collect(DISTINCT type) AS types, collect(DISTINCT source) AS sources, collect(DISTINCT target) AS targets,
    count(CASE WHEN holds THEN 1 END) AS now, count(CASE WHEN NOT holds THEN 1 END) AS ended, max(r.fact) AS example
RETURN relation, types, sources, targets, now, ended, example ORDER BY now + ended DESC, relation LIMIT 200
