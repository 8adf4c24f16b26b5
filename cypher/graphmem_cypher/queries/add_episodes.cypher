// Store episodes that are new.
UNWIND $q.rows AS row
CREATE (e:Graphmem:Episode)
SET e = row.values,
    e.occurred_at = datetime(row.occurred_at),
    e.recorded_at = datetime(row.recorded_at),
    e.processed_at = datetime(row.processed_at),
    e.retry_at = datetime(row.retry_at)
RETURN count(e) AS row
