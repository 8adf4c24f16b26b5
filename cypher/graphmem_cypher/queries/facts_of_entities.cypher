// Ids of all facts about some entities of a scope.
UNWIND $q.ids AS id
MATCH (e:Graphmem {id: id})-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE]-(:Graphmem) USING INDEX SEEK e:Graphmem(id)
WHERE e:Entity AND e.scope = $q.scope AND r.graphmem_id IS NOT NULL
RETURN DISTINCT r.graphmem_id AS row
