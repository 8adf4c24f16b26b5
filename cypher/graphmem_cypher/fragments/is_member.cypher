($q.moment IS NULL OR m.since <= $q.moment)
AND ($q.ended OR m.until IS NULL OR coalesce($q.moment < m.until, false))
