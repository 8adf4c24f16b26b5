// The keys of a scope among the nearest vectors of all scopes, by the vector index.
CALL db.index.vector.queryNodes('graphmem_vectors', $q.most, $q.vector) YIELD node, score
WHERE node.scope = $q.scope AND node.kind = $q.kind
WITH node.key AS key, max(score) AS score
RETURN [key, score] AS row ORDER BY score DESC, key LIMIT $q.limit
