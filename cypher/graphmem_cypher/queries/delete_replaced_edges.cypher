// Delete facts that a write replaces; a row is the id of one with properties of others, and their names and values.
/* include find_edges */
WITH r, r.graphmem_id AS id, [key IN keys(r) WHERE NOT key IN $q.ours | [key, r[key]]] AS foreign
DELETE r
WITH id, foreign WHERE size(foreign) > 0
RETURN [id, foreign] AS row
