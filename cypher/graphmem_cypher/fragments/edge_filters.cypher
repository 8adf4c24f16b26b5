r.scope IN $scopes AND r.graphmem_id > $after
AND ($ids IS NULL OR r.graphmem_id IN $ids)
AND ($sources IS NULL OR s.id IN $sources)
AND ($targets IS NULL OR t.id IN $targets)
AND ($touching IS NULL OR s.id IN $touching OR t.id IN $touching)
AND ($relations IS NULL OR r.relation IN $relations)
AND ($types IS NULL OR type(r) IN $types)
AND ($keys IS NULL OR [s.id, t.id, r.relation, type(r)] IN $keys)
AND ($slots IS NULL OR [s.id, r.relation] IN $slots)
AND ($text IS NULL OR r.fact =~ $text OR r.relation =~ $text)
AND ($axis IS NULL OR (r[$axis] > $begin AND r[$axis] <= $end))
AND ($versions = 'all'
    OR ($versions = 'active' AND r.valid_to IS NULL AND r.expired_at IS NULL)
    OR ($versions = 'visible' AND /* include edge_is_visible */))
