// All aliases of entities: their own names, unless those stand for no or another entity, and their other names.
UNWIND $q.ids AS id
MATCH (e:Graphmem {id: id}) USING INDEX SEEK e:Graphmem(id)
WHERE e:Entity AND e.scope IN $q.scopes AND e.entity_id IS NULL
RETURN [e.canonical_name, e.entity_type, e.id] AS row
UNION ALL
UNWIND $q.ids AS id
MATCH (a:Graphmem {entity_id: id})
WHERE a.scope IN $q.scopes
RETURN [a.canonical_name, a.entity_type, a.entity_id] AS row
