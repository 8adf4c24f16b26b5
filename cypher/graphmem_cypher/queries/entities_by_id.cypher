// A page of the entities with the given ids, in order of id.
UNWIND $q.ids AS id
MATCH (e:Graphmem {id: id}) USING INDEX SEEK e:Graphmem(id)
WHERE e:Entity AND e.scope IN $q.scopes AND id > $q.after /* include entity_filters */
WITH e ORDER BY e.id LIMIT $q.limit
RETURN /* include entity_row */ AS row
