// Delete entities of a scope with their names, mentions, memberships, and what recall traces hold of them; return
// their ids. Their facts are gone by then.
UNWIND $q.ids AS id
MATCH (e:Graphmem {id: id})
WHERE e:Entity AND e.scope = $q.scope
CALL (id) {
    MATCH (a:Graphmem {entity_id: id})
    DELETE a
}
DETACH DELETE e
RETURN id AS row
