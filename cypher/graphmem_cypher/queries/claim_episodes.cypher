// Claim the oldest pending episodes that are due and unclaimed. Without $q.own, no scope counts as held.
CALL () {
    MATCH (c:Graphmem)
    WHERE c.claimed_by IS NOT NULL AND c.claimed_until > $q.now AND NOT c.claimed_by STARTS WITH $q.own
    RETURN collect(DISTINCT c.scope) AS held
}
UNWIND [scope IN $q.scopes WHERE NOT scope IN held] AS scope
CALL (scope) {
    MATCH (e:Graphmem)
    WHERE e.queue = scope AND e.id > '' AND (e.error IS NULL OR e.retry_at IS NOT NULL)
        AND (e.retry_at IS NULL OR e.retry_at <= $q.now) AND (e.claimed_by IS NULL OR e.claimed_until <= $q.now)
    RETURN e ORDER BY e.queue, e.id LIMIT $q.limit
}
WITH e ORDER BY e.id LIMIT $q.limit
SET e.claimed_by = $q.owner, e.claimed_until = $q.until
WITH e ORDER BY e.id
RETURN /* include episode_row */ AS row
