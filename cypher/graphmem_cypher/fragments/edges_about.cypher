// Ours, told in a way that no index serves: a plan made for an empty memory would read the whole index for each entity.
(e)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]-(:Graphmem)
    WHERE coalesce(r.graphmem_id, '') <> ''
