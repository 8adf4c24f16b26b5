// Write the retrieval counts of facts.
/* include find_edges */
SET r.retrieval_count = $q.counts[r.graphmem_id]
RETURN count(r) AS row
