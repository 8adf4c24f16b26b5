e.id > $after
AND ($ids IS NULL OR e.id IN $ids)
AND ($external_ids IS NULL OR e.external_id IN $external_ids)
AND ($session IS NULL OR e.session_id = $session)
AND ($before IS NULL OR e.id < $before)
AND ($known IS NULL OR (e.recorded_at <= $known AND e.occurred_at <= $valid))
AND ($state IS NULL
    OR ($state = 'processed' AND e.processed_at IS NOT NULL)
    OR ($state = 'pending' AND e.processed_at IS NULL AND (e.error IS NULL OR e.retry_at IS NOT NULL))
    OR ($state = 'failed' AND e.processed_at IS NULL AND e.error IS NOT NULL AND e.retry_at IS NULL))
