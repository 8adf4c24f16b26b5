// The relations of a scope with the types of their ends, and how many facts hold now and don't, the most frequent first.
MATCH (s:Entity)
USING INDEX SEEK s:Entity(scope, id)
WHERE s.scope = $q.scope AND s.id > '' AND s:Graphmem
MATCH (s)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]->(t:Graphmem)
WHERE r.graphmem_id IS NOT NULL
WITH r.relation AS relation, s.entity_type AS source, t.entity_type AS target, /* include edge_is_current */ AS holds
WITH relation, collect(DISTINCT source) AS sources, collect(DISTINCT target) AS targets, count(*) AS all,
    count(CASE WHEN holds THEN 1 END) AS now
RETURN [relation, sources, targets, now, all - now] AS row
ORDER BY all DESC, relation LIMIT $q.limit
