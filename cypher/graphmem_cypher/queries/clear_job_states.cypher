// Delete the states of upkeep jobs of a scope.
MATCH (m:Graphmem)
WHERE m.scope = $q.scope AND m.upkeep_job IS NOT NULL
WITH m LIMIT $q.limit
DELETE m
RETURN count(*) AS row
