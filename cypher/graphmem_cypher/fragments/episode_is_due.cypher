e.id > '' AND (e.error IS NULL OR e.retry_at IS NOT NULL) AND (e.retry_at IS NULL OR e.retry_at <= $q.now)
AND (e.claimed_by IS NULL OR e.claimed_until <= $q.now)
