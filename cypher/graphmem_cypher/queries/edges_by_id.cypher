// A page of the facts with the given ids.
/* include find_edges */
WITH startNode(r) AS s, r, endNode(r) AS t
WHERE /* include edge_filters */
/* include edge_page */
