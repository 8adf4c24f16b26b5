// A page of the merges of some scopes, in order of id.
UNWIND $q.scopes AS scope
CALL (scope) {
    MATCH (m:Merge)
    USING INDEX m:Merge(scope, id)
    WHERE m.scope = scope AND m.id > $q.after AND m:Graphmem AND ($q.undone OR m.undone = false)
    RETURN m ORDER BY m.scope, m.id LIMIT $q.limit
}
/* include merge_page */
