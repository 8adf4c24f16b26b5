// by CASE: of NOT (… AND …) AND NOT (… AND …) about types, the planner of Neo4j 5.26 makes another condition
CASE
    WHEN type(r) IN ['SEMANTIC', 'TEMPORAL', 'CAUSAL', 'ENTITY', 'CO_OCCURRENCE'] THEN r.graphmem_id IS NULL
    WHEN type(r) IN ['MENTIONS', 'IN_COMMUNITY', 'ACTIVATED', 'FOUND'] THEN NOT o:Graphmem
    ELSE true
END
