// Delete a batch of the recall traces of a scope.
MATCH (t:Recall)
WHERE t.scope = $q.scope AND t.id > '' AND t:Graphmem
WITH t LIMIT $q.limit
DETACH DELETE t
RETURN count(*) AS row
