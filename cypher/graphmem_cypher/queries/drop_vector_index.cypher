// Drop the vector index, for one of another dimension.
DROP INDEX graphmem_vectors IF EXISTS
