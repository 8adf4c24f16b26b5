// The facts of an entity in the order of their confidence, for those that have very many: `graphmem_rank` is the
// negative confidence, because an index is read in ascending order and ids break ties.

CREATE INDEX graphmem_semantic_source IF NOT EXISTS
FOR ()-[r:SEMANTIC]-() ON (r.graphmem_source, r.graphmem_rank, r.graphmem_id);
CREATE INDEX graphmem_semantic_target IF NOT EXISTS
FOR ()-[r:SEMANTIC]-() ON (r.graphmem_target, r.graphmem_rank, r.graphmem_id);
CREATE INDEX graphmem_temporal_source IF NOT EXISTS
FOR ()-[r:TEMPORAL]-() ON (r.graphmem_source, r.graphmem_rank, r.graphmem_id);
CREATE INDEX graphmem_temporal_target IF NOT EXISTS
FOR ()-[r:TEMPORAL]-() ON (r.graphmem_target, r.graphmem_rank, r.graphmem_id);
CREATE INDEX graphmem_causal_source IF NOT EXISTS
FOR ()-[r:CAUSAL]-() ON (r.graphmem_source, r.graphmem_rank, r.graphmem_id);
CREATE INDEX graphmem_causal_target IF NOT EXISTS
FOR ()-[r:CAUSAL]-() ON (r.graphmem_target, r.graphmem_rank, r.graphmem_id);
CREATE INDEX graphmem_entity_source IF NOT EXISTS
FOR ()-[r:ENTITY]-() ON (r.graphmem_source, r.graphmem_rank, r.graphmem_id);
CREATE INDEX graphmem_entity_target IF NOT EXISTS
FOR ()-[r:ENTITY]-() ON (r.graphmem_target, r.graphmem_rank, r.graphmem_id);
CREATE INDEX graphmem_co_occurrence_source IF NOT EXISTS
FOR ()-[r:CO_OCCURRENCE]-() ON (r.graphmem_source, r.graphmem_rank, r.graphmem_id);
CREATE INDEX graphmem_co_occurrence_target IF NOT EXISTS
FOR ()-[r:CO_OCCURRENCE]-() ON (r.graphmem_target, r.graphmem_rank, r.graphmem_id);
MATCH (s:Graphmem)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]->(t:Graphmem)
WHERE r.graphmem_id IS NOT NULL AND r.graphmem_rank IS NULL
CALL (s, r, t) {
    SET r.graphmem_source = s.id, r.graphmem_target = t.id, r.graphmem_rank = -r.confidence
} IN TRANSACTIONS OF 10000 ROWS;
