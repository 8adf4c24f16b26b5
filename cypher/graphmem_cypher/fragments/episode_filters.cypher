e.id > $q.after
AND ($q.ids IS NULL OR e.id IN $q.ids)
AND ($q.external_ids IS NULL OR e.external_id IN $q.external_ids)
AND ($q.session IS NULL OR e.session_id = $q.session)
AND ($q.before IS NULL OR e.id < $q.before)
AND ($q.known IS NULL OR (e.recorded_at <= $q.known AND e.occurred_at <= $q.valid))
AND ($q.live_at IS NULL OR (coalesce(e.expires_at > $q.live_at, true) AND coalesce(e.ended_at > $q.live_end, true)))
AND ($q.hidden_at IS NULL OR coalesce(e.expires_at <= $q.hidden_at, false) OR coalesce(e.ended_at <= $q.hidden_end, false))
AND ($q.expired_by IS NULL OR e.expires_at <= $q.expired_by)
AND ($q.state IS NULL
    OR ($q.state = 'processed' AND e.processed_at IS NOT NULL)
    OR ($q.state = 'pending' AND e.processed_at IS NULL AND (e.error IS NULL OR e.retry_at IS NOT NULL))
    OR ($q.state = 'failed' AND e.processed_at IS NULL AND e.error IS NOT NULL AND e.retry_at IS NULL))
AND /* include episode_is_wanted */
