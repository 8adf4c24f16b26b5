// A page of the communities of one level, in order of id.
UNWIND $q.scopes AS scope
CALL (scope) {
    MATCH (c:Community)
    USING INDEX c:Community(scope, level, id)
    WHERE c.scope = scope AND c.level = $q.level AND c:Graphmem AND /* include community_filters */
    RETURN c ORDER BY c.scope, c.level, c.id LIMIT $q.limit
}
WITH c ORDER BY c.id LIMIT $q.limit
RETURN /* include community_row */ AS row
