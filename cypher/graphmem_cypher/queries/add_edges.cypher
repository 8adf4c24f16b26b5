// Store facts.
UNWIND $q.rows AS row
MATCH (s:Graphmem {id: row.source})
MATCH (t:Graphmem {id: row.target})
CREATE (s)-[r:$(row.type)]->(t)
SET r = row.values,
    r.valid_from = datetime(row.valid_from),
    r.valid_to = datetime(row.valid_to),
    r.recorded_at = datetime(row.recorded_at),
    r.expired_at = datetime(row.expired_at),
    r.last_retrieved_at = datetime(row.last_retrieved_at)
RETURN count(r) AS row
