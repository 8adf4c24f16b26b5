// A page of the facts that end at some entities.
UNWIND $q.anchors AS anchor
MATCH (t:Graphmem {id: anchor}) USING INDEX SEEK t:Graphmem(id)
MATCH (s:Graphmem)-[r:/* include types */]->(t)
WHERE /* include edge_filters */
/* include edge_page */
