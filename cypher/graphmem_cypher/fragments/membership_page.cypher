WITH DISTINCT c, m, e ORDER BY c.id, e.id, m.since LIMIT $q.limit
RETURN [c.id, e.id, toString(m.since), toString(m.until)] AS row
