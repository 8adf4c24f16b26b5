(e)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]-(:Graphmem)
    WHERE r.graphmem_id IS NOT NULL AND r.valid_to IS NULL AND r.expired_at IS NULL
