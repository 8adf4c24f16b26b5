// A page of the memberships in the communities of one level.
UNWIND $q.scopes AS scope
CALL (scope) {
    MATCH (c:Community)
    USING INDEX c:Community(scope, level, id)
    WHERE c.scope = scope AND c.level = $q.level AND c.id >= $q.after_community AND c:Graphmem
    WITH c ORDER BY c.scope, c.level, c.id
    MATCH (e:Graphmem)-[m:IN_COMMUNITY]->(c)
    WHERE /* include membership_filters */
    RETURN c, m, e ORDER BY c.scope, c.level, c.id, e.id, m.since LIMIT $q.limit
}
/* include membership_page */
