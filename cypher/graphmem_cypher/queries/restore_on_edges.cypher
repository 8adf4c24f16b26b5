// Give replaced facts the properties of others that `delete_replaced_edges` returned.
/* include find_edges */
UNWIND $q.rows[r.graphmem_id] AS property
SET r[property[0]] = property[1]
RETURN count(*) AS row
