// Ids of all facts that some entities of a scope take part in.
UNWIND $q.ids AS id
MATCH (e:Graphmem {id: id})-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]-(:Graphmem)
WHERE e:Entity AND e.scope = $q.scope AND r.graphmem_id IS NOT NULL
RETURN DISTINCT r.graphmem_id AS row
