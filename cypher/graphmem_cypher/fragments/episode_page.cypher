WITH DISTINCT e
ORDER BY CASE WHEN $newest THEN e.id END DESC, e.id
LIMIT $limit
RETURN /* include episode_row */ AS row
