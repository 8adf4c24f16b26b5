// The number of relationships of others that some nodes of a scope are an end of.
UNWIND $q.ids AS id
MATCH (n:Graphmem {id: id}) USING INDEX SEEK n:Graphmem(id)
WHERE n.scope = $q.scope
MATCH (n)-[r]-(o)
WHERE /* include is_foreign */
RETURN count(DISTINCT r) AS row
