// The seeds of a traversal.
UNWIND $q.ids AS id
MATCH (e:Graphmem {id: id}) USING INDEX SEEK e:Graphmem(id)
WHERE e:Entity AND e.scope IN $q.scopes
RETURN [e.id, e.name, e.entity_type] AS row
