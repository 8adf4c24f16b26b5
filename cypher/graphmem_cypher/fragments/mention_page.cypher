WITH p, m, e ORDER BY p.id, e.id LIMIT $q.limit
RETURN [e.id, p.id, m.surface, m.confidence, toString(m.seen_at)] AS row
