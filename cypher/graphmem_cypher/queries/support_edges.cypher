// Write the confidence and the episodes of facts that were stated again.
UNWIND $q.rows AS row
/* include find_edge */
SET r.confidence = row.confidence, r.episode_ids = row.episode_ids
RETURN count(r) AS row
