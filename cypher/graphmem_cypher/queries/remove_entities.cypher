// Delete entities of a scope, their facts being gone, with names, mentions, memberships and rows of traces; return ids.
UNWIND $q.ids AS id
MATCH (e:Graphmem {id: id})
WHERE e:Entity AND e.scope = $q.scope
CALL (id) {
    MATCH (a:Graphmem {entity_id: id})
    DELETE a
}
DETACH DELETE e
RETURN id AS row
