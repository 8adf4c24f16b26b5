// Delete recall traces of a scope.
UNWIND $q.ids AS id
MATCH (t:Graphmem {id: id}) USING INDEX SEEK t:Graphmem(id)
WHERE t:Recall AND t.scope = $q.scope
DETACH DELETE t
RETURN id AS row
