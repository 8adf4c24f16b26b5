// The same in an order that is given: GDS numbers, and visits, the nodes as they come.
/* include live_edges */
WITH s, t, confidence ORDER BY $q.order[s.id], $q.order[t.id]
/* include project */
