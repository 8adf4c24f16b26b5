// Delete the node of an empty scope.
MATCH (l:Graphmem {scope_key: $q.scope})
DELETE l
RETURN count(*) AS row
