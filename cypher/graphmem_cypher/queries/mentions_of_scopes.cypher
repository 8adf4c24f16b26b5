// Mentions of some scopes.
UNWIND $q.scopes AS scope
MATCH (p:Episode {scope: scope})
WHERE p.id > '' AND p:Graphmem
MATCH (p)-[m:MENTIONS]->(e:Graphmem)
/* include mention_page */
