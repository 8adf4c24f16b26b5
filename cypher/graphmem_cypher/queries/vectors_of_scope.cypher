// The nearest keys of a scope, by all of its vectors.
MATCH (v:GraphmemVector) WHERE v.scope = $q.scope AND v.kind = $q.kind AND v.key >= ''
WITH v.key AS key, max(vector.similarity.cosine(v.vector, $q.vector)) AS score
RETURN [key, score] AS row ORDER BY score DESC, key LIMIT $q.limit
