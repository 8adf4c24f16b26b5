// Ids of the facts of a scope stated by some episodes, in all versions.
UNWIND $q.expressions AS expression
CALL db.index.fulltext.queryRelationships('graphmem_sources', expression) YIELD relationship AS r
WHERE r.scope = $q.scope AND r.graphmem_id > ''
WITH DISTINCT r.graphmem_id AS id
RETURN id AS row ORDER BY id
