// Drop the vector index, so that it can be created with another dimension.
DROP INDEX graphmem_vectors IF EXISTS
