// A page of the index entries of a scope after a position, 50 in each record.
MATCH (i:IndexEntry)
WHERE i.scope = $q.scope AND i.position > $q.after AND i:Graphmem
WITH i ORDER BY i.scope, i.position LIMIT $q.limit
/* include index_page */
