// Entities, archived ones included, that have one of the names as an alias in a scope.
UNWIND range(0, size($q.names) - 1) AS position
MATCH (a:Graphmem {scope: $q.scope, canonical_name: $q.names[position]})
WHERE a.entity_type IS NOT NULL
MATCH (e:Graphmem {id: coalesce(a.entity_id, a.id)}) USING INDEX SEEK e:Graphmem(id)
WITH position, a, e ORDER BY position, e.id
RETURN [a.canonical_name, /* include entity_row */] AS row
