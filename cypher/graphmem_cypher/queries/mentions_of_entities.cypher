// Mentions of some entities.
UNWIND $q.entities AS id
MATCH (e:Graphmem {id: id}) USING INDEX SEEK e:Graphmem(id)
MATCH (p:Graphmem)-[m:MENTIONS]->(e)
WHERE e:Entity AND e.scope IN $q.scopes AND ($q.episodes IS NULL OR p.id IN $q.episodes)
/* include mention_page */
