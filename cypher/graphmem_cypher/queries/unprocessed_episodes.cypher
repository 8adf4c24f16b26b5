// A page of the episodes of some scopes that aren't processed.
UNWIND $q.scopes AS scope
CALL (scope) {
    MATCH (e:Graphmem)
    WHERE e.queue = scope AND /* include episode_filters */
    RETURN e ORDER BY CASE WHEN $q.newest THEN e.id END DESC, e.id LIMIT $q.limit
}
/* include episode_page */
