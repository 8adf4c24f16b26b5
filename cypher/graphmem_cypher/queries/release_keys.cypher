// Take the key of active facts from facts that were ended by hand.
/* include find_edges */
SET r.graphmem_active = null
RETURN count(r) AS row
