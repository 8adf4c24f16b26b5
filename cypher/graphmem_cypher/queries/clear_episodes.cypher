// Delete a batch of the episodes of a scope.
MATCH (e:Episode)
WHERE e.scope = $q.scope AND e.id > '' AND e:Graphmem
WITH e LIMIT $q.limit
DETACH DELETE e
RETURN count(*) AS row
