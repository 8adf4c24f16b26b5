c.id > $q.after
/* if level */ AND c.level = $q.level /* end */
/* if moment */ AND c.created_at <= $q.moment /* end */
AND ($q.ended OR c.ended_at IS NULL OR coalesce($q.moment < c.ended_at, false))
