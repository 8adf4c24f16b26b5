// The newest recall traces of some scopes.
UNWIND $q.scopes AS scope
CALL (scope) {
    MATCH (t:Recall)
    USING INDEX t:Recall(scope, id)
    WHERE t.scope = scope AND t.id > '' AND t:Graphmem
    RETURN t ORDER BY t.scope DESC, t.id DESC LIMIT $q.limit
}
/* include recall_page */
