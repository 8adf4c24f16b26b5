// Delete the index entries of a scope and its model; the scope is locked.
MATCH (l:Graphmem {scope_key: $q.scope})
WITH l, coalesce(l.index_generation, 0) + 1 AS next
SET l.index_model = null, l.index_generation = next
WITH l
OPTIONAL MATCH (i:IndexEntry) WHERE i.scope = $q.scope AND i.position > 0 AND i:Graphmem
WITH collect(i) AS entries
FOREACH (i IN entries | DELETE i)
RETURN size(entries) AS row
