// The same projection in a given order: GDS numbers and visits the nodes in that order.
/* include live_edges */
WITH s, t, confidence ORDER BY $q.order[s.id], $q.order[t.id]
/* include project */
