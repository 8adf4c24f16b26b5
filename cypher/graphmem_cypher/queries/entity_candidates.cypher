// Entities that have a phrase as an alias, and entities matched by words (a match in the name counts double).
UNWIND $q.scopes AS scope
UNWIND $q.phrases AS phrase
MATCH (a:Graphmem {scope: scope, canonical_name: phrase})
WHERE a.entity_type IS NOT NULL
MATCH (e:Graphmem {id: coalesce(a.entity_id, a.id)}) USING INDEX SEEK e:Graphmem(id)
RETURN [e.id, phrase] AS row
UNION ALL
UNWIND $q.words AS word
CALL (word) {
    CALL db.index.fulltext.queryNodes('graphmem_words', word.expression, {limit: $q.per_word}) YIELD node
    RETURN collect(node) AS nodes
}
WITH word, nodes, log(1 + ($q.collection - size(nodes) + 0.5) / (size(nodes) + 0.5)) AS weight
UNWIND nodes AS node
WITH node, word, weight, any(begin IN word.begins WHERE (' ' + node.name_words) CONTAINS begin) AS named
WITH node, sum(CASE WHEN named THEN 2 ELSE 1 END * weight) AS score, collect([word.text, weight]) AS weights
ORDER BY score DESC, node.id LIMIT $q.limit
RETURN [node.id, node.name_words, node.summary_words, weights] AS row
