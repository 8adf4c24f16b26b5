// 03 How are two of them connected
// The three shortest ways from one entity to another over facts that hold now, at most five steps. A picture.
// :param scope => 'default'
// :param name => 'Maya Chen'
// :param other => 'Globex'
MATCH (a:Graphmem {scope: $scope, canonical_name: toLower(normalize(trim($name), NFKC))})
WHERE a.entity_type IS NOT NULL
MATCH (x:Graphmem {id: coalesce(a.entity_id, a.id)})
WITH DISTINCT x
MATCH (b:Graphmem {scope: $scope, canonical_name: toLower(normalize(trim($other), NFKC))})
WHERE b.entity_type IS NOT NULL
MATCH (y:Graphmem {id: coalesce(b.entity_id, b.id)})
WITH DISTINCT x, y
MATCH path = SHORTEST 3 (x)
    (()-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE
        WHERE r.graphmem_id IS NOT NULL AND (r.valid_to IS NULL
            OR (r.valid_to > datetime() AND r.valid_to > r.valid_from))]-()){1,5} (y)
RETURN path
