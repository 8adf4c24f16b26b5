// Delete a batch of the entities of a scope with their names; their facts are deleted before.
MATCH (e:Entity)
WHERE e.scope = $q.scope AND e.id > '' AND e:Graphmem
WITH e LIMIT $q.limit
CALL (e) {
    MATCH (a:Graphmem {entity_id: e.id})
    WHERE a:Alias
    DELETE a
}
DETACH DELETE e
RETURN count(*) AS row
