// Write the confidence and the episodes of facts that were stated again.
/* include find_edges */
WITH r, $q.rows[r.graphmem_id] AS row
SET r.confidence = row[0], r.graphmem_rank = -row[0], r.episode_ids = row[1]
RETURN count(r) AS row
