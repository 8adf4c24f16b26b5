/* if current */ AND /* include edge_is_current */ /* end */
/* if known */ AND r.recorded_at <= $q.known AND coalesce(r.valid_from <= $q.valid, toString(r.valid_from) <= toString($q.valid))
    AND coalesce($q.valid < CASE WHEN $q.known < r.expired_at THEN r.prior_valid_to ELSE r.valid_to END,
        toString($q.valid) < CASE WHEN $q.known < r.expired_at THEN null ELSE toString(r.valid_to) END, true) /* end */
