// Write what became of episodes and give them back.
UNWIND $q.rows AS row
MATCH (e:Graphmem {id: row.id})
SET e.processed_at = datetime(row.processed_at), e.retry_at = datetime(row.retry_at),
    e.error = row.error, e.attempts = row.attempts, e.queue = row.queue,
    e.claimed_by = null, e.claimed_until = null
RETURN count(e) AS row
