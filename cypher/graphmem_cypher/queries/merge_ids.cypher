// The holders of merge ids.
UNWIND $q.ids AS id
MATCH (n:Graphmem {id: id}) USING INDEX SEEK n:Graphmem(id)
RETURN [n.id, n.scope, n:Merge] AS row
