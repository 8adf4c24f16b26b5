// The progress of the vector index in a scope.
MATCH (l:Graphmem {scope_key: $q.scope}) WHERE l.vectors_model IS NOT NULL
RETURN [l.vectors_model, l.vectors_generation, l.vectors_position, l.vectors_last, l.vectors_last_position] AS row
