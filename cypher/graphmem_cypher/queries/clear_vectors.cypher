// Delete some of the vectors of a scope and tell how many: it is called until there are none.
MATCH (v:GraphmemVector) WHERE v.scope = $q.scope AND v.kind >= '' AND v.key >= ''
WITH v LIMIT $q.limit
DELETE v
RETURN count(v) AS row
