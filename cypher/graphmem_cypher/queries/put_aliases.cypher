// Register aliases, or point them elsewhere.
UNWIND $q.rows AS row
MERGE (a:Graphmem {scope: $q.scope, alias: row.alias, entity_type: row.entity_type})
ON CREATE SET a:Alias
SET a.entity_id = row.entity_id
RETURN count(a) AS row
