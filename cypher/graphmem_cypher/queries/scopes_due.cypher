// Scopes of the oldest episodes that are due and unclaimed. Without $q.own, no scope counts as held.
/* include held_scopes */
MATCH (l:Graphmem)
WHERE l.scope_key IS NOT NULL /* if scopes */ AND l.scope_key IN $q.scopes /* end */ AND NOT l.scope_key IN held
CALL (l) {
    MATCH (e:Graphmem)
    WHERE e.queue = l.scope_key AND /* include episode_is_due */
    RETURN e.id AS oldest ORDER BY e.queue, e.id LIMIT 1
}
RETURN l.scope_key AS row ORDER BY oldest LIMIT $q.limit
