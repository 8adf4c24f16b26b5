// Store vectors of a scope: key, number and vector of each.
UNWIND $q.rows AS row
CREATE (v:Graphmem:GraphmemVector {scope: $q.scope, kind: $q.kind, key: row[0], number: row[1]})
WITH v, row
CALL db.create.setNodeVectorProperty(v, 'vector', row[2])
RETURN count(*) AS row
