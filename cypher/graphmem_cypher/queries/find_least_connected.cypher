// Entities, those with the fewest active facts first, then those last seen earliest.
MATCH (e:Entity)
WHERE e.scope = $q.scope AND e.id > '' AND e:Graphmem AND e.archived_at IS NULL
WITH e, COUNT { /* include active_edges */ } AS degree
RETURN e.id AS row ORDER BY degree, e.last_seen_at, e.id LIMIT $q.limit
