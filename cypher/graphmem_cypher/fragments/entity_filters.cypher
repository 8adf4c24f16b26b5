/* if types */ AND e.entity_type IN $q.types /* end */
/* if unarchived */ AND e.archived_at IS NULL /* end */
/* if known */ AND e.recorded_at <= $q.known AND e.first_seen_at <= $q.valid
    AND (e.valid_from IS NULL OR e.valid_from <= $q.valid) AND (e.valid_to IS NULL OR $q.valid < e.valid_to) /* end */
