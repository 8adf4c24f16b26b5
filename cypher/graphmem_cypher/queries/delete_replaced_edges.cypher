// Delete facts that a write replaces.
/* include find_edges */
DELETE r
RETURN count(*) AS row
