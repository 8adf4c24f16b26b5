// Take out facts that a write replaces.
UNWIND $q.ids AS id
WITH {id: id} AS row
/* include find_edge */
DELETE r
RETURN count(*) AS row
