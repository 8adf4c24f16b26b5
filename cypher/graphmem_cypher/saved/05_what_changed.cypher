// 05 What changed in the last days
// The facts of a scope that were learned or ended of late, the newest first. Reads every fact of the scope. A table.
// :param scope => 'default'
// :param days => 7
WITH datetime() - duration({days: $days}) AS since
MATCH (s:Entity)
USING INDEX SEEK s:Entity(scope, id)
WHERE s.scope = $scope AND s.id > '' AND s:Graphmem
MATCH (s)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]->(t:Graphmem)
WHERE r.recorded_at >= since OR r.expired_at >= since
UNWIND CASE WHEN r.recorded_at >= since THEN [[r.recorded_at, 'learned']] ELSE [] END
    + CASE WHEN r.expired_at >= since THEN [[r.expired_at, 'ended']] ELSE [] END AS change
RETURN change[0] AS at, change[1] AS change, s.name AS source, r.relation AS relation, t.name AS target,
    r.fact AS fact, toString(date(r.valid_from)) AS `from`, toString(date(r.valid_to)) AS until
ORDER BY at DESC, r.graphmem_id DESC LIMIT 200
