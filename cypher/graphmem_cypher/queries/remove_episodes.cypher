// Delete episodes of a scope with their mentions and rows of traces; return their ids.
UNWIND $q.ids AS id
MATCH (p:Graphmem {id: id}) USING INDEX SEEK p:Graphmem(id)
WHERE p:Episode AND p.scope = $q.scope
DETACH DELETE p
RETURN id AS row
