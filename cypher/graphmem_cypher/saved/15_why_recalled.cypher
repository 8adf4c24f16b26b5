// 15 Why was this recalled
// The last traced recall whose question holds some words: where it started, the best of the facts that it came upon,
// with the entities at which it found them, and the episodes. A picture; score, hop and rank are properties of its arrows.
// :param scope => 'default'
// :param query => ''
MATCH (q:Recall)
USING INDEX SEEK q:Recall(scope, id)
WHERE q.scope = $scope AND q.id > '' AND q:Graphmem AND toLower(q.query) CONTAINS toLower($query)
WITH q ORDER BY q.scope DESC, q.id DESC LIMIT 1
CALL (q) {
    OPTIONAL MATCH (q)-[a:ACTIVATED]->(e:Graphmem)
    WITH a, e ORDER BY a.seed DESC, a.rank, a.score DESC, a.position LIMIT 100
    OPTIONAL MATCH (e)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]-(other:Graphmem)
    WHERE r.graphmem_id = a.fact_id
    RETURN a, e, r, other, null AS f, null AS p
    UNION ALL
    MATCH (q)-[f:FOUND]->(p:Graphmem)
    RETURN null AS a, null AS e, null AS r, null AS other, f, p ORDER BY f.rank LIMIT 100
}
RETURN q, a, e, r, other, f, p
