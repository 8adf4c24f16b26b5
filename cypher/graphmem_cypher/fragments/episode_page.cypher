WITH DISTINCT e
ORDER BY e.id /* if newest */ DESC /* end */
LIMIT $q.limit
WITH collect(e) AS page
UNWIND range(0, size(page) - 1, 50) AS begin
RETURN [e IN page[begin .. begin + 50] WHERE e.id IS NOT NULL |
    CASE WHEN $q.ids_only THEN e.id ELSE /* include episode_row */ END] AS row
