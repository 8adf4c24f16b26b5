// Delete a batch of the merges of a scope.
MATCH (m:Merge)
WHERE m.scope = $q.scope AND m.id > '' AND m:Graphmem
WITH m LIMIT $q.limit
DETACH DELETE m
RETURN count(*) AS row
