// Delete facts that a write replaces.
UNWIND $q.ids AS id
/* include find_edge */
DELETE r
RETURN count(*) AS row
