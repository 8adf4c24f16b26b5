WITH DISTINCT m
ORDER BY CASE WHEN $q.newest THEN m.id END DESC, m.id
LIMIT $q.limit
RETURN m.body AS row
