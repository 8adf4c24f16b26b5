// Record how far a scope was taken into the vector index, nulls: that it isn't there; the scope is locked.
MATCH (l:Graphmem {scope_key: $q.scope})
SET l.vectors_model = $q.model, l.vectors_generation = $q.generation, l.vectors_position = $q.position,
    l.vectors_last = $q.last, l.vectors_last_position = $q.last_position
RETURN count(l) AS row
