WITH DISTINCT m
ORDER BY m.id /* if newest */ DESC /* end */
LIMIT $q.limit
RETURN [m.id, m.body] AS row
