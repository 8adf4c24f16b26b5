// A page of the communities of some scopes, in order of id.
UNWIND $q.scopes AS scope
CALL (scope) {
    MATCH (c:Community)
    USING INDEX c:Community(scope, id)
    WHERE c.scope = scope AND c:Graphmem AND /* include community_filters */
    RETURN c ORDER BY c.scope, c.id LIMIT $q.limit
}
WITH c ORDER BY c.id LIMIT $q.limit
RETURN /* include community_row */ AS row
