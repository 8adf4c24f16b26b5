// Mentions in some episodes.
UNWIND $q.episodes AS id
MATCH (p:Graphmem {id: id}) USING INDEX SEEK p:Graphmem(id)
MATCH (p)-[m:MENTIONS]->(e:Graphmem)
WHERE p:Episode AND p.scope IN $q.scopes AND ($q.entities IS NULL OR e.id IN $q.entities)
/* include mention_page */
