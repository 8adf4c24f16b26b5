// A page of the recall traces of some scopes, in order of id.
UNWIND $q.scopes AS scope
CALL (scope) {
    MATCH (t:Recall)
    USING INDEX t:Recall(scope, id)
    WHERE t.scope = scope AND t.id > $q.after AND t:Graphmem
    RETURN t ORDER BY t.scope, t.id LIMIT $q.limit
}
/* include recall_page */
