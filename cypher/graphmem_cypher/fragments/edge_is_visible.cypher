CASE
    WHEN $q.known IS NULL THEN r.valid_to IS NULL OR (r.valid_to > $q.now AND r.valid_to > r.valid_from)
    ELSE r.recorded_at <= $q.known AND r.valid_from <= $q.valid
        AND coalesce($q.valid < CASE WHEN $q.known < r.expired_at THEN r.prior_valid_to ELSE r.valid_to END, true)
END
