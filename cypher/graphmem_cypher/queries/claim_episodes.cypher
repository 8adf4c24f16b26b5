// Claim the oldest pending episodes that are due and unclaimed. Without $q.own, no scope counts as held.
/* include held_scopes */
UNWIND [scope IN $q.scopes WHERE NOT scope IN held] AS scope
CALL (scope) {
    MATCH (e:Graphmem)
    WHERE e.queue = scope AND /* include episode_is_due */
    RETURN e ORDER BY e.queue, e.id LIMIT $q.limit
}
WITH e ORDER BY e.id LIMIT $q.limit
SET e.claimed_by = $q.owner, e.claimed_until = $q.until
WITH e ORDER BY e.id
RETURN /* include episode_row */ AS row
