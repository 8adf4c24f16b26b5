// Store entities that are new.
UNWIND $q.rows AS row
CREATE (e:Graphmem:Entity)
SET e = row.values,
    e.first_seen_at = datetime(row.first_seen_at),
    e.last_seen_at = datetime(row.last_seen_at),
    e.recorded_at = datetime(row.recorded_at),
    e.archived_at = datetime(row.archived_at),
    e.valid_from = datetime(row.valid_from),
    e.valid_to = datetime(row.valid_to)
SET e:$(row.labels)
RETURN count(e) AS row
