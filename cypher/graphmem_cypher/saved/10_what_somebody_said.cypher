// 10 What somebody said
// The facts that come from the newest episodes of a speaker, with the words they were said in. A table.
// :param scope => 'default'
// :param speaker => 'Maya Chen'
MATCH (p:Episode)
USING INDEX SEEK p:Episode(scope, id)
WHERE p.scope = $scope AND p.id > '' AND p:Graphmem AND p.speaker = $speaker
WITH p ORDER BY p.id DESC LIMIT 200
MATCH (p)-[:MENTIONS]->(s:Graphmem)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]->(t:Graphmem)
WHERE p.id IN r.episode_ids
RETURN p.occurred_at AS said, s.name AS source, r.relation AS relation, t.name AS target, r.fact AS fact,
    r.valid_to IS NULL OR (r.valid_to > datetime() AND r.valid_to > r.valid_from) AS holds, p.text AS words
ORDER BY said DESC, r.graphmem_id
