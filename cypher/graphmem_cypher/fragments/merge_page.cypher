WITH DISTINCT m
ORDER BY m.id /* if newest */ DESC /* end */
LIMIT $q.limit
RETURN m.body AS row
