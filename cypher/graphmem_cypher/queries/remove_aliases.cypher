// Delete names of a scope.
UNWIND $q.rows AS row
MATCH (a:Graphmem {scope: $q.scope, alias: row[0], entity_type: row[1]})
DELETE a
RETURN count(*) AS row
