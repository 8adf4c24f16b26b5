// Vectors for the engine's own index: one node each, found by scope, kind and key. The vector index itself needs to know
// the dimension of the embedding model, and is made when the first vector comes.

CREATE INDEX graphmem_vector_key IF NOT EXISTS
FOR (v:GraphmemVector) ON (v.scope, v.kind, v.key);
