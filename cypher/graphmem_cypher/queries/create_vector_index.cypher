// Create the vector index. Neo4j accepts its options only as a parameter of its own, not as a part of $q.
CREATE VECTOR INDEX graphmem_vectors IF NOT EXISTS FOR (v:GraphmemVector) ON (v.vector) OPTIONS $options
