WITH DISTINCT e
ORDER BY CASE WHEN $q.newest THEN e.id END DESC, e.id
LIMIT $q.limit
RETURN /* include episode_row */ AS row
