// Delete names of a scope; an entity keeps its own name, which stands for no entity then.
UNWIND $q.rows AS row
MATCH (a:Graphmem {scope: $q.scope, canonical_name: row[0], entity_type: row[1]})
SET a.entity_id = ''
WITH a WHERE a:Alias
DELETE a
RETURN count(*) AS row
