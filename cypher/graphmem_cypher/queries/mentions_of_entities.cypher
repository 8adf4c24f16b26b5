// Mentions of some entities.
UNWIND $entities AS id
MATCH (e:Graphmem {id: id})
MATCH (p:Graphmem)-[m:MENTIONS]->(e)
WHERE e:Entity AND e.scope IN $scopes AND ($episodes IS NULL OR p.id IN $episodes)
/* include mention_page */
