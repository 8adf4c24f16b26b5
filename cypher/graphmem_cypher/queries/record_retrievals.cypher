// Count one retrieval of each fact and one access of each of its ends.
/* include find_edges */
WITH startNode(r) AS s, r, endNode(r) AS t WHERE r.scope IN $q.scopes
SET r.retrieval_count = r.retrieval_count + 1.0, r.last_retrieved_at = $q.at
WITH s, t
UNWIND [s, t] AS e
WITH e, count(*) AS times
SET e.access_count = e.access_count + times
RETURN count(e) AS row
