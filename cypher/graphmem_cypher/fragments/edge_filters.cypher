r.scope IN $q.scopes AND r.graphmem_id > $q.after
AND ($q.ids IS NULL OR r.graphmem_id IN $q.ids)
AND ($q.sources IS NULL OR s.id IN $q.sources)
AND ($q.targets IS NULL OR t.id IN $q.targets)
AND ($q.touching IS NULL OR s.id IN $q.touching OR t.id IN $q.touching)
AND ($q.relations IS NULL OR r.relation IN $q.relations)
AND ($q.types IS NULL OR type(r) IN $q.types)
AND ($q.keys IS NULL OR [s.id, t.id, r.relation, type(r)] IN $q.keys)
AND ($q.slots IS NULL OR [s.id, r.relation] IN $q.slots)
AND ($q.kinds IS NULL OR coalesce(r.kind, 'state') IN $q.kinds)
AND ($q.ended_by IS NULL OR r.superseded_by IN $q.ended_by OR any(id IN r.ended_by WHERE id IN $q.ended_by))
AND ($q.text IS NULL OR r.fact =~ $q.text OR r.relation =~ $q.text)
AND ($q.axis IS NULL OR coalesce(r[$q.axis] > $q.begin AND r[$q.axis] <= $q.end,
    toString(r[$q.axis]) > toString($q.begin) AND toString(r[$q.axis]) <= toString($q.end)))
AND ($q.versions = 'all'
    OR ($q.versions = 'active' AND r.valid_to IS NULL AND r.expired_at IS NULL)
    OR ($q.versions = 'past' AND r.superseded_by IS NULL AND coalesce(
        r.valid_from < r.valid_to AND r.valid_to <= $q.now,
        toString(r.valid_from) < toString(r.valid_to) AND toString(r.valid_to) <= toString($q.now), false))
    OR ($q.versions = 'visible' AND /* include edge_is_visible */))
