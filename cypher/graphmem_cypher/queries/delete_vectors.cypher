// Delete the vectors of these keys.
UNWIND $q.keys AS key
MATCH (v:GraphmemVector {scope: $q.scope, kind: $q.kind, key: key})
DELETE v
RETURN count(v) AS row
