($types IS NULL OR e.entity_type IN $types)
AND ($archived OR e.archived_at IS NULL)
AND ($known IS NULL OR (
    e.recorded_at <= $known AND e.first_seen_at <= $valid
    AND (e.valid_from IS NULL OR e.valid_from <= $valid) AND (e.valid_to IS NULL OR $valid < e.valid_to)))
