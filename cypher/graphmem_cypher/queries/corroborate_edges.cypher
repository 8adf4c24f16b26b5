// Write the confidence and the episodes of facts that were stated again.
UNWIND $q.rows AS row
WITH row, row[0] AS id
/* include find_edge */
SET r.confidence = row[1], r.graphmem_rank = -row[1], r.episode_ids = row[2]
RETURN count(r) AS row
