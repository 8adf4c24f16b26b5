// A page of the entities of some scopes, in order of id.
UNWIND $q.scopes AS scope
CALL (scope) {
    MATCH (e:Entity)
    USING INDEX e:Entity(scope, id)
    WHERE e.scope = scope AND e.id > $q.after AND e:Graphmem /* include entity_filters */
    RETURN e ORDER BY e.scope, e.id LIMIT $q.limit
}
WITH e ORDER BY e.id LIMIT $q.limit
RETURN /* include entity_row */ AS row
