// The newest episodes of some scopes.
UNWIND $q.scopes AS scope
CALL (scope) {
    MATCH (e:Episode)
    USING INDEX e:Episode(scope, id)
    WHERE e.scope = scope AND e:Graphmem AND /* include episode_filters */
    RETURN e ORDER BY e.scope DESC, e.id DESC LIMIT $q.limit
}
/* include episode_page */
