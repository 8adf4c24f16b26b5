// A page of the episodes of some scopes, in order of id.
UNWIND $q.scopes AS scope
CALL (scope) {
    MATCH (e:Episode)
    USING INDEX e:Episode(scope, id)
    WHERE e.scope = scope AND e:Graphmem AND /* include episode_filters */
    RETURN e ORDER BY e.scope, e.id LIMIT $q.limit
}
/* include episode_page */
