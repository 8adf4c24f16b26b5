// Delete entities of a scope, after their facts, with names, mentions, memberships and rows of traces; return ids.
CALL () {
    UNWIND $q.ids AS id
    MATCH (a:Graphmem {entity_id: id})
    WHERE a.scope = $q.scope
    SET a.entity_id = ''
    WITH a WHERE a:Alias
    DELETE a
}
UNWIND $q.ids AS id
MATCH (e:Graphmem {id: id}) USING INDEX SEEK e:Graphmem(id)
WHERE e:Entity AND e.scope = $q.scope
CALL (e) {
    // a name that stands for another entity stays
    WITH e WHERE e.entity_id <> ''
    WITH e.canonical_name AS name, e.entity_type AS entity_type, e.entity_id AS entity_id
    REMOVE e.canonical_name, e.entity_id  // or later reads of this transaction find the deleted node by its index
    CREATE (:Graphmem:Alias {scope: $q.scope, canonical_name: name, entity_type: entity_type, entity_id: entity_id})
}
DETACH DELETE e
RETURN id AS row
