// Write the retrieval counts of facts.
UNWIND $q.rows AS row
WITH row, row[0] AS id
/* include find_edge */
SET r.retrieval_count = row[1]
RETURN count(r) AS row
