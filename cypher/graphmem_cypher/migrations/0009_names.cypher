// An entity is itself the node of its canonical name: nodes of aliases are left for its other names, and one constraint
// holds for both. `entity_id` says for whom a name stands: an entity has it where that is somebody else, or '', nobody.

MATCH (a:Alias) WHERE a:Graphmem AND a.alias IS NOT NULL
CALL (a) {
    OPTIONAL MATCH (e:Graphmem {scope: a.scope, canonical_name: a.alias, entity_type: a.entity_type})
    CALL (a, e) {
        WITH a, e WHERE e IS NOT NULL
        SET e.entity_id = CASE WHEN a.entity_id = e.id THEN null ELSE a.entity_id END
        DELETE a
    }
    CALL (a, e) {
        WITH a, e WHERE e IS NULL
        SET a.canonical_name = a.alias
        REMOVE a.alias
    }
} IN TRANSACTIONS OF 10000 ROWS;
DROP CONSTRAINT graphmem_alias IF EXISTS;
