// How many vectors of a kind a scope has, and how many there are altogether.
MATCH (v:GraphmemVector) WHERE v.scope = $q.scope AND v.kind = $q.kind AND v.key >= ''
WITH count(v) AS held
CALL () { MATCH (v:GraphmemVector) RETURN count(v) AS everything }
RETURN [held, everything] AS row
