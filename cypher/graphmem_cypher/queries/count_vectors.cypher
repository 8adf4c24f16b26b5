// The number of vectors of a kind, in a scope and in total.
MATCH (v:GraphmemVector) WHERE v.scope = $q.scope AND v.kind = $q.kind AND v.key >= ''
WITH count(v) AS held
CALL () { MATCH (v:GraphmemVector) RETURN count(v) AS everything }
RETURN [held, everything] AS row
