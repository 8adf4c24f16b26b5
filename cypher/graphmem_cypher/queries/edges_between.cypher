// A page of the facts from one end to another.
UNWIND $q.pairs AS pair
MATCH (s:Graphmem {id: pair[0]}) USING INDEX SEEK s:Graphmem(id)
MATCH (t:Graphmem {id: pair[1]}) USING INDEX SEEK t:Graphmem(id)
MATCH (s)-[r:/* include types */]->(t)
WHERE /* include edge_filters */
/* include edge_page */
