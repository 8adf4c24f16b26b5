// Delete communities of a scope with their memberships; their parts lose their parent.
UNWIND $q.ids AS id
MATCH (c:Graphmem {id: id}) USING INDEX SEEK c:Graphmem(id)
WHERE c:Community AND c.scope = $q.scope
CALL (c) {
    MATCH (part:Community)
    WHERE part.scope = c.scope AND part.id > '' AND part:Graphmem AND part.parent_id = c.id
    SET part.parent_id = null
}
DETACH DELETE c
RETURN id AS row
