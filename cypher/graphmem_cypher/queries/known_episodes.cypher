// Episodes that hold one of the external ids in the scope, or one of the ids anywhere.
UNWIND $q.external AS key
MATCH (e:Graphmem {scope: $q.scope, external_key: key})
RETURN ['external', e.external_id, e.id] AS row
UNION ALL
UNWIND $q.ids AS id
MATCH (e:Graphmem {id: id})
RETURN ['id', e.id, e.id] AS row
