// Delete a batch of the communities of a scope.
MATCH (c:Community)
WHERE c.scope = $q.scope AND c.id > '' AND c:Graphmem
WITH c LIMIT $q.limit
DETACH DELETE c
RETURN count(*) AS row
