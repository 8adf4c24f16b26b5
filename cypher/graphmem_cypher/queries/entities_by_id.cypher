// A page of named entities, in order of id.
UNWIND $ids AS id
MATCH (e:Graphmem {id: id})
WHERE e:Entity AND e.scope IN $scopes AND e.id > $after AND /* include entity_filters */
WITH e ORDER BY e.id LIMIT $limit
RETURN /* include entity_row */ AS row
