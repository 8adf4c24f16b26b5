// Record the progress of the vector index in a scope, nulls for none; the scope is locked.
MATCH (l:Graphmem {scope_key: $q.scope})
SET l.vectors_model = $q.model, l.vectors_generation = $q.generation, l.vectors_position = $q.position,
    l.vectors_last = $q.last, l.vectors_last_position = $q.last_position
RETURN count(l) AS row
