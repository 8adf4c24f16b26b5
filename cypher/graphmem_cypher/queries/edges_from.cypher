// A page of the facts that begin at some entities.
UNWIND $q.anchors AS anchor
MATCH (s:Graphmem {id: anchor}) USING INDEX SEEK s:Graphmem(id)
MATCH (s)-[r:/* include types */]->(t:Graphmem)
WHERE /* include edge_filters */
/* include edge_page */
