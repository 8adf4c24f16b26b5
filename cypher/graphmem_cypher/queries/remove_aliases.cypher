// Delete names of a scope; an entity keeps its own, which stands for nobody then.
CALL () {
    UNWIND $q.rows AS row
    MATCH (e:Graphmem {scope: $q.scope, canonical_name: row[0], entity_type: row[1]})
    WHERE e:Entity
    SET e.entity_id = ''
}
CALL () {
    UNWIND $q.rows AS row
    MATCH (a:Graphmem {scope: $q.scope, canonical_name: row[0], entity_type: row[1]})
    WHERE a:Alias
    DELETE a
}
RETURN true AS row
