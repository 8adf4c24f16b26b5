// Entities last seen and recorded by a time that have no visible facts and none that expired after it.
MATCH (e:Entity)
WHERE e.scope = $q.scope AND e.id > '' AND e:Graphmem AND e.archived_at IS NULL
    AND e.last_seen_at <= datetime($q.before) AND e.recorded_at <= datetime($q.before)
    AND NOT EXISTS {
        /* include edges_about */ AND (r.expired_at > datetime($q.before) OR /* include edge_is_current */)
    }
RETURN e.id AS row ORDER BY e.scope, e.id LIMIT $q.limit
