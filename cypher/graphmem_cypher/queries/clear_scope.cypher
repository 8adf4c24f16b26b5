// Delete the node of a scope that holds nothing any more.
MATCH (l:Graphmem {scope_key: $q.scope})
DELETE l
RETURN count(*) AS row
