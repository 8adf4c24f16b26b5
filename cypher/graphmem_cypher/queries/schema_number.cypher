// The number of the last migration that the database has.
MATCH (m:Graphmem) WHERE m.migration IS NOT NULL
RETURN max(m.migration) AS row
