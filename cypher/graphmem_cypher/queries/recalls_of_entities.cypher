// A page of the recall traces that started from some entities, or found facts at them.
UNWIND $q.entities AS id
MATCH (n:Graphmem {id: id}) USING INDEX SEEK n:Graphmem(id)
MATCH (t:Graphmem)-[:ACTIVATED]->(n)
WHERE t.scope IN $q.scopes AND /* include recall_filters */
/* include recall_page */
