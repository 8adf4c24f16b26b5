// The state of the vector index and the dimension that it was made for.
SHOW VECTOR INDEXES YIELD name, state, options
WHERE name = 'graphmem_vectors'
RETURN [state, options.indexConfig['vector.dimensions']] AS row
