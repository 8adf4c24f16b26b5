// Counts of a scope.
MATCH (e:Entity) WHERE e.scope = $q.scope AND e.id > '' AND e:Graphmem
WITH e.entity_type AS entity_type, count(*) AS entities, count(e.archived_at) AS archived
RETURN ['entities', entity_type, entities, archived] AS row
UNION ALL
MATCH (a:Graphmem) WHERE a.scope = $q.scope AND a.canonical_name IS NOT NULL AND a.entity_type IS NOT NULL
    AND coalesce(a.entity_id, a.id) <> ''
RETURN ['aliases', null, count(*), 0] AS row
UNION ALL
MATCH (e:Episode) WHERE e.scope = $q.scope AND e.id > '' AND e:Graphmem
RETURN ['episodes', null, count(*), sum(COUNT { (e)-[:MENTIONS]->(:Graphmem) })] AS row
UNION ALL
MATCH (e:Graphmem) WHERE e.queue = $q.scope AND e.id > ''
RETURN ['unprocessed', null, count(*), count(CASE WHEN e.error IS NOT NULL AND e.retry_at IS NULL THEN 1 END)] AS row
UNION ALL
MATCH (:Graphmem)-[r:SEMANTIC]->(:Graphmem) WHERE r.scope = $q.scope AND r.graphmem_id > ''
RETURN ['edges', 'SEMANTIC', count(*), count(CASE WHEN r.valid_to IS NULL AND r.expired_at IS NULL THEN 1 END)] AS row
UNION ALL
MATCH (:Graphmem)-[r:TEMPORAL]->(:Graphmem) WHERE r.scope = $q.scope AND r.graphmem_id > ''
RETURN ['edges', 'TEMPORAL', count(*), count(CASE WHEN r.valid_to IS NULL AND r.expired_at IS NULL THEN 1 END)] AS row
UNION ALL
MATCH (:Graphmem)-[r:CAUSAL]->(:Graphmem) WHERE r.scope = $q.scope AND r.graphmem_id > ''
RETURN ['edges', 'CAUSAL', count(*), count(CASE WHEN r.valid_to IS NULL AND r.expired_at IS NULL THEN 1 END)] AS row
UNION ALL
MATCH (:Graphmem)-[r:ENTITY]->(:Graphmem) WHERE r.scope = $q.scope AND r.graphmem_id > ''
RETURN ['edges', 'ENTITY', count(*), count(CASE WHEN r.valid_to IS NULL AND r.expired_at IS NULL THEN 1 END)] AS row
UNION ALL
MATCH (:Graphmem)-[r:CO_OCCURRENCE]->(:Graphmem) WHERE r.scope = $q.scope AND r.graphmem_id > ''
RETURN ['edges', 'CO_OCCURRENCE', count(*), count(CASE WHEN r.valid_to IS NULL AND r.expired_at IS NULL THEN 1 END)] AS row
UNION ALL
MATCH (c:Community) WHERE c.scope = $q.scope AND c.id > '' AND c:Graphmem
RETURN ['communities', null, count(*), count(c.ended_at)] AS row
UNION ALL
MATCH (c:Community) WHERE c.scope = $q.scope AND c.id > '' AND c:Graphmem AND c.level = 0
RETURN ['members', null, sum(COUNT { (c)<-[r:IN_COMMUNITY]-(:Graphmem) WHERE r.until IS NULL }), 0] AS row
UNION ALL
MATCH (t:Recall) WHERE t.scope = $q.scope AND t.id > '' AND t:Graphmem
RETURN ['recalls', null, count(*), 0] AS row
