// A page of the recall traces that contain some episodes.
UNWIND $q.episodes AS id
MATCH (n:Graphmem {id: id}) USING INDEX SEEK n:Graphmem(id)
MATCH (t:Graphmem)-[:FOUND]->(n)
WHERE t.scope IN $q.scopes AND /* include recall_filters */
/* include recall_page */
