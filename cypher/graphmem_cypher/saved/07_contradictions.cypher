// 07 Contradictions: several answers where there can be one
// Facts that hold now and can't all be true: a relation of the list with several targets, or one that says so. A picture.
// The list is that of the default ontology: put in the single-valued relations of your own.
// :param scope => 'default'
WITH ['works_at', 'lives_in', 'born_in', 'manages', 'married_to', 'has_status', 'has_budget', 'has_deadline', 'deployed_on', 'has_birthday', 'has_age', 'has_salary', 'has_rent', 'has_weight', 'has_height', 'has_phone_number', 'has_email'] AS single
MATCH (s:Entity)
USING INDEX SEEK s:Entity(scope, id)
WHERE s.scope = $scope AND s.id > '' AND s:Graphmem
MATCH (s)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY]->(t:Graphmem)
WHERE r.relation IN single + ['conflicts_with'] AND coalesce(r.kind, '') <> 'inferred'
    AND r.valid_from <= datetime() AND (r.valid_to IS NULL OR r.valid_to > datetime())
WITH s, r.relation AS relation, collect(DISTINCT t) AS targets, collect(r) AS facts
WHERE size(targets) > 1 OR relation = 'conflicts_with'
RETURN s, facts, targets LIMIT 50
