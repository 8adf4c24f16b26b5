// The state of the vector index and its dimension.
SHOW VECTOR INDEXES YIELD name, state, options
WHERE name = 'graphmem_vectors'
RETURN [state, options.indexConfig['vector.dimensions']] AS row
