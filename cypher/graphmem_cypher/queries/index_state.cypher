// The model and the generation of a scope's index.
MATCH (l:Graphmem {scope_key: $q.scope})
RETURN [l.index_model, coalesce(l.index_generation, 0)] AS row
