WITH DISTINCT e
ORDER BY CASE WHEN $q.newest THEN e.id END DESC, e.id
LIMIT $q.limit
RETURN CASE WHEN $q.ids_only THEN e.id ELSE /* include episode_row */ END AS row
