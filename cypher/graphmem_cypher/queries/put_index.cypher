// Store index entries, each at the next position of its scope; the scope is locked.
MATCH (l:Graphmem {scope_key: $q.scope})
WITH l, coalesce(l.index_position, 0) AS last, coalesce(l.index_model, $q.model) AS model
SET l.index_position = last + size($q.rows), l.index_model = model
WITH last
UNWIND range(0, size($q.rows) - 1) AS at
WITH last + at + 1 AS position, $q.rows[at] AS row
MERGE (i:Graphmem {scope: $q.scope, index_kind: row[0], index_key: row[1]})
SET i:IndexEntry, i.model = row[2], i.vectors = row[3], i.pieces = row[4], i.detail = row[5], i.complete = row[6],
    i.position = position
RETURN count(i) AS row
