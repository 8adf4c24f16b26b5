// A page of the index entries of a scope after a position.
MATCH (i:IndexEntry)
WHERE i.scope = $q.scope AND i.position > $q.after AND i:Graphmem
RETURN /* include index_row */ AS row ORDER BY i.scope, i.position LIMIT $q.limit
