($q.types IS NULL OR e.entity_type IN $q.types)
AND ($q.archived OR e.archived_at IS NULL)
AND ($q.known IS NULL OR (
    e.recorded_at <= $q.known AND e.first_seen_at <= $q.valid
    AND (e.valid_from IS NULL OR e.valid_from <= $q.valid) AND (e.valid_to IS NULL OR $q.valid < e.valid_to)))
