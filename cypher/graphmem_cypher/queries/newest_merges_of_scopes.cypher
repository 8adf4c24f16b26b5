// The newest merges of some scopes.
UNWIND $q.scopes AS scope
CALL (scope) {
    MATCH (m:Merge)
    USING INDEX m:Merge(scope, id)
    WHERE m.scope = scope AND m.id > '' AND m:Graphmem AND ($q.undone OR m.undone = false)
    RETURN m ORDER BY m.scope DESC, m.id DESC LIMIT $q.limit
}
/* include merge_page */
