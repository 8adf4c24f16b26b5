e.id > $q.after
/* if external_ids */ AND e.external_id IN $q.external_ids /* end */
/* if session */ AND e.session_id = $q.session /* end */
/* if before */ AND e.id < $q.before /* end */
/* if known */ AND e.recorded_at <= $q.known AND e.occurred_at <= $q.valid /* end */
/* if live_at */ AND coalesce(e.expires_at > $q.live_at, true) AND coalesce(e.ended_at > $q.live_end, true) /* end */
/* if hidden_at */ AND (coalesce(e.expires_at <= $q.hidden_at, false) OR coalesce(e.ended_at <= $q.hidden_end, false))
/* end */
/* if expired_by */ AND e.expires_at <= $q.expired_by /* end */
/* if processed */ AND e.processed_at IS NOT NULL /* end */
/* if pending */ AND e.processed_at IS NULL AND (e.error IS NULL OR e.retry_at IS NOT NULL) /* end */
/* if failed */ AND e.processed_at IS NULL AND e.error IS NOT NULL AND e.retry_at IS NULL /* end */
/* if filter */ AND /* include episode_is_wanted */ /* end */
