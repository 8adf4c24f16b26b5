// An end without a time zone, written by hand, compares with no ZONED DATETIME (null): it is compared as text.
CASE
    WHEN $q.known IS NULL THEN r.valid_to IS NULL OR coalesce(r.valid_to > $q.now AND r.valid_to > r.valid_from,
        toString(r.valid_to) > toString($q.now) AND toString(r.valid_to) > toString(r.valid_from))
    ELSE r.recorded_at <= $q.known AND r.valid_from <= $q.valid
        AND coalesce($q.valid < CASE WHEN $q.known < r.expired_at THEN r.prior_valid_to ELSE r.valid_to END,
            toString($q.valid) < CASE WHEN $q.known < r.expired_at THEN null ELSE toString(r.valid_to) END, true)
END
