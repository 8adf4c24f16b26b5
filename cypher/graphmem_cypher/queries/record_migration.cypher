// Record that a migration was applied.
MERGE (m:Graphmem {migration: $q.number})
ON CREATE SET m:Migration, m.name = $q.name, m.applied_at = datetime()
RETURN m.migration AS row
