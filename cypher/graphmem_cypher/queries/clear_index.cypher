// Delete a batch of the index entries of a scope.
MATCH (i:IndexEntry)
WHERE i.scope = $q.scope AND i.position > 0 AND i:Graphmem
WITH i LIMIT $q.limit
DELETE i
RETURN count(*) AS row
