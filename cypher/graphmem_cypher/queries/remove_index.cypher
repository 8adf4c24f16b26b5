// Delete index entries of deleted rows; the next generation tells readers to drop copies. The scope is locked.
UNWIND $q.rows AS row
MATCH (i:Graphmem {scope: $q.scope, index_kind: row[0], index_key: row[1]})
WITH collect(i) AS entries
WHERE size(entries) > 0
MATCH (l:Graphmem {scope_key: $q.scope})
WITH l, entries, coalesce(l.index_generation, 0) + 1 AS next
SET l.index_generation = next
FOREACH (i IN entries | DELETE i)
RETURN size(entries) AS row
