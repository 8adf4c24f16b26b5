// Delete merges of a scope.
UNWIND $q.ids AS id
MATCH (m:Graphmem {id: id}) USING INDEX SEEK m:Graphmem(id)
WHERE m:Merge AND m.scope = $q.scope
DELETE m
RETURN count(*) AS row
