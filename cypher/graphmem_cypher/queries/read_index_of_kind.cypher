// A page of the index entries of one kind of a scope after a position, 50 in each record.
MATCH (i:IndexEntry)
USING INDEX i:IndexEntry(scope, index_kind, position)
WHERE i.scope = $q.scope AND i.index_kind = $q.kind AND i.position > $q.after AND i:Graphmem
WITH i ORDER BY i.scope, i.index_kind, i.position LIMIT $q.limit
/* include index_page */
