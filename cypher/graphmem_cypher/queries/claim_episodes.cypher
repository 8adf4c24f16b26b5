// Take the oldest pending episodes that are due and that nobody holds.
UNWIND $scopes AS scope
CALL (scope) {
    MATCH (e:Graphmem)
    WHERE e.queue = scope AND e.id > '' AND (e.error IS NULL OR e.retry_at IS NOT NULL)
        AND (e.retry_at IS NULL OR e.retry_at <= $now) AND (e.claimed_by IS NULL OR e.claimed_until <= $now)
    RETURN e ORDER BY e.queue, e.id LIMIT $limit
}
WITH e ORDER BY e.id LIMIT $limit
SET e.claimed_by = $owner, e.claimed_until = $until
WITH e ORDER BY e.id
RETURN /* include episode_row */ AS row
