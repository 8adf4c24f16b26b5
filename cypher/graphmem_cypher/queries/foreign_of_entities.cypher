// Labels and names of properties of some entities, and the number of relationships of others at each.
UNWIND $q.ids AS id
MATCH (n:Graphmem {id: id}) USING INDEX SEEK n:Graphmem(id)
WHERE n:Entity AND n.scope = $q.scope
RETURN [id, labels(n), keys(n), COUNT { MATCH (n)-[r]-(o) WHERE /* include is_foreign */ RETURN DISTINCT r }] AS row
