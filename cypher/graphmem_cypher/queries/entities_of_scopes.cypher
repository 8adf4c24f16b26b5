// A page of the entities of some scopes, in order of id.
UNWIND $scopes AS scope
CALL (scope) {
    MATCH (e:Entity)
    USING INDEX e:Entity(scope, id)
    WHERE e.scope = scope AND e.id > $after AND e:Graphmem AND /* include entity_filters */
    RETURN e ORDER BY e.scope, e.id LIMIT $limit
}
WITH e ORDER BY e.id LIMIT $limit
RETURN /* include entity_row */ AS row
