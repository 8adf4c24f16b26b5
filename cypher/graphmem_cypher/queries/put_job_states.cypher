// Store states of upkeep jobs, or replace them.
UNWIND $q.rows AS row
MERGE (m:Graphmem {scope: $q.scope, upkeep_job: row[0]})
SET m:GraphmemUpkeep, m.done_at = datetime(row[1]), m.episodes = row[2], m.begun_at = datetime(row[3]), m.cursor = row[4]
RETURN count(m) AS row
