// Remove the progress of the vector index in all scopes.
MATCH (l:Graphmem) WHERE l.scope_key > ''
REMOVE l.vectors_model, l.vectors_generation, l.vectors_position, l.vectors_last, l.vectors_last_position
RETURN l.scope_key AS row
