// A page of the episodes of some scopes that aren't processed.
UNWIND $scopes AS scope
CALL (scope) {
    MATCH (e:Graphmem)
    WHERE e.queue = scope AND /* include episode_filters */
    RETURN e ORDER BY CASE WHEN $newest THEN e.id END DESC, e.id LIMIT $limit
}
/* include episode_page */
