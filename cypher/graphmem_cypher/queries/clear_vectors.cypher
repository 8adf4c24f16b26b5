// Delete a batch of the vectors of a scope and return its size; called until it is empty.
MATCH (v:GraphmemVector) WHERE v.scope = $q.scope AND v.kind >= '' AND v.key >= ''
WITH v LIMIT $q.limit
DELETE v
RETURN count(v) AS row
