// The number of the last migration applied to the database.
MATCH (m:Graphmem) WHERE m.migration IS NOT NULL
RETURN max(m.migration) AS row
