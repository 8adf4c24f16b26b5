// A page of the episodes of some scopes that aren't processed.
UNWIND $q.scopes AS scope
CALL (scope) {
    MATCH (e:Graphmem)
    WHERE e.queue = scope AND /* include episode_filters */
    RETURN e ORDER BY e.id /* if newest */ DESC /* end */ LIMIT $q.limit
}
/* include episode_page */
