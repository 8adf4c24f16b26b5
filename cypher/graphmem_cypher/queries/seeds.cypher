// The seeds of a walk.
UNWIND $q.ids AS id
MATCH (e:Graphmem {id: id})
WHERE e:Entity AND e.scope IN $q.scopes AND e.archived_at IS NULL
RETURN [e.id, e.name, e.entity_type] AS row
