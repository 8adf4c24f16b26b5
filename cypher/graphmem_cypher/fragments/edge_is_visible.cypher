CASE
    WHEN $known IS NULL THEN r.valid_to IS NULL OR (r.valid_to > $now AND r.valid_to > r.valid_from)
    ELSE r.recorded_at <= $known AND r.valid_from <= $valid
        AND (r.valid_to IS NULL OR $valid < r.valid_to OR coalesce($known < r.expired_at, false))
END
