// Make the vector index. Neo4j takes its options as a parameter of its own only, not as a part of $q.
CREATE VECTOR INDEX graphmem_vectors IF NOT EXISTS FOR (v:GraphmemVector) ON (v.vector) OPTIONS $options
