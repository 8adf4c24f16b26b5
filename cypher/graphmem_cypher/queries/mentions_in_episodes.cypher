// Mentions in some episodes.
UNWIND $episodes AS id
MATCH (p:Graphmem {id: id})
MATCH (p)-[m:MENTIONS]->(e:Graphmem)
WHERE p:Episode AND p.scope IN $scopes AND ($entities IS NULL OR e.id IN $entities)
/* include mention_page */
