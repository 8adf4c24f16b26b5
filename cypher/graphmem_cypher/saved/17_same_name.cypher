// 17 Same name, several entities
// Names that stand for entities of several types: often one thing that was read in two ways. A table.
// :param scope => 'default'
MATCH (a:Graphmem) WHERE a.scope = $scope AND a.canonical_name IS NOT NULL AND a.entity_type IS NOT NULL
WITH a.canonical_name AS name, collect(DISTINCT coalesce(a.entity_id, a.id)) AS ids WHERE size(ids) > 1
UNWIND ids AS id
MATCH (e:Graphmem {id: id})
WITH name, e, COUNT { (e)-[f:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE WHERE f.graphmem_id IS NOT NULL]-() } AS facts ORDER BY facts DESC, e.id
WITH name, e, facts + CASE facts WHEN 1 THEN ' fact' ELSE ' facts' END AS facts
RETURN name, collect(e.name + ' (' + e.entity_type + ', ' + facts + ')') AS entities
ORDER BY name LIMIT 200
