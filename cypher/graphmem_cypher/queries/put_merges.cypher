// Insert merges, or replace them by id.
UNWIND $q.rows AS row
MERGE (m:Graphmem {id: row.id})
SET m:Merge, m += row, m.at = datetime(row.at), m.undone_at = datetime(row.undone_at)
RETURN count(m) AS row
