// A page of the facts that begin or end at some entities.
UNWIND $q.anchors AS anchor
MATCH (n:Graphmem {id: anchor}) USING INDEX SEEK n:Graphmem(id)
MATCH (n)-[r:/* include types */]-(:Graphmem)
WITH DISTINCT r, startNode(r) AS s, endNode(r) AS t
WHERE /* include edge_filters */
/* include edge_page */
