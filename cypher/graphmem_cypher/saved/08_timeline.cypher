// 08 Timeline of somebody or something
// Every version of every fact of an entity in the order of time, with what became of it. A table.
// :param scope => 'default'
// :param name => 'Maya Chen'
MATCH (a:Graphmem {scope: $scope, canonical_name: toLower(normalize(trim($name), NFKC))})
WHERE a.entity_type IS NOT NULL
MATCH (x:Graphmem {id: coalesce(a.entity_id, a.id)})
MATCH (x)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE WHERE r.graphmem_id IS NOT NULL]-(:Graphmem)
RETURN toString(date(r.valid_from)) AS `from`, toString(date(r.valid_to)) AS until,
    CASE
        WHEN r.valid_to IS NULL THEN 'holds'
        WHEN r.valid_to = r.valid_from THEN 'retracted'
        WHEN r.valid_to > datetime() THEN 'ends'
        WHEN r.kind = 'event' THEN 'happened'
        WHEN r.superseded_by IS NOT NULL THEN 'replaced'
        ELSE 'ended'
    END AS state,
    startNode(r).name AS source, r.relation AS relation, endNode(r).name AS target, r.fact AS fact,
    r.confidence AS confidence, r.recorded_at AS learned, r.expired_at AS end_learned
ORDER BY r.valid_from, r.recorded_at, r.graphmem_id LIMIT 500
