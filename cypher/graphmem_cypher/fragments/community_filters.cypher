c.id > $q.after AND ($q.ids IS NULL OR c.id IN $q.ids) AND ($q.level IS NULL OR c.level = $q.level)
AND ($q.moment IS NULL OR c.created_at <= $q.moment)
AND ($q.ended OR c.ended_at IS NULL OR coalesce($q.moment < c.ended_at, false))
