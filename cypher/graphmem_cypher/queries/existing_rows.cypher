// The rows that a write references, and the rows that hold its keys, read before it changes anything.
UNWIND $q.nodes AS id
MATCH (n:Graphmem {id: id}) USING INDEX SEEK n:Graphmem(id)
RETURN ['node', n.id, n.scope, n:Entity, n.canonical_name, n.entity_type, n.entity_id] AS row
UNION ALL
UNWIND $q.names AS name
MATCH (n:Graphmem {scope: $q.scope, canonical_name: name[0], entity_type: name[1]})
RETURN ['name', n.canonical_name, n.entity_type, n.id, n.entity_id] AS row
UNION ALL
/* include find_edges */
RETURN ['edge', r.graphmem_id, r.scope, startNode(r).id, endNode(r).id, r.relation, type(r), r.confidence,
    toString(r.valid_from), toString(r.valid_to), toString(r.expired_at), r.episode_ids] AS row
UNION ALL
UNWIND $q.active.SEMANTIC AS key
MATCH (:Graphmem)-[r:SEMANTIC {graphmem_active: key}]->(:Graphmem)
RETURN ['active', r.graphmem_active, type(r), r.graphmem_id, r.valid_to IS NULL AND r.expired_at IS NULL] AS row
UNION ALL
UNWIND $q.active.TEMPORAL AS key
MATCH (:Graphmem)-[r:TEMPORAL {graphmem_active: key}]->(:Graphmem)
RETURN ['active', r.graphmem_active, type(r), r.graphmem_id, r.valid_to IS NULL AND r.expired_at IS NULL] AS row
UNION ALL
UNWIND $q.active.CAUSAL AS key
MATCH (:Graphmem)-[r:CAUSAL {graphmem_active: key}]->(:Graphmem)
RETURN ['active', r.graphmem_active, type(r), r.graphmem_id, r.valid_to IS NULL AND r.expired_at IS NULL] AS row
UNION ALL
UNWIND $q.active.ENTITY AS key
MATCH (:Graphmem)-[r:ENTITY {graphmem_active: key}]->(:Graphmem)
RETURN ['active', r.graphmem_active, type(r), r.graphmem_id, r.valid_to IS NULL AND r.expired_at IS NULL] AS row
UNION ALL
UNWIND $q.active.CO_OCCURRENCE AS key
MATCH (:Graphmem)-[r:CO_OCCURRENCE {graphmem_active: key}]->(:Graphmem)
RETURN ['active', r.graphmem_active, type(r), r.graphmem_id, r.valid_to IS NULL AND r.expired_at IS NULL] AS row
