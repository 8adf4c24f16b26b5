// All names that entities go by.
UNWIND $q.ids AS id
MATCH (a:Graphmem {entity_id: id})
WHERE a.scope IN $q.scopes
RETURN [a.alias, a.entity_type, a.entity_id] AS row
