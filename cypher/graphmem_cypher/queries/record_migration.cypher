// Note that a migration was done.
MERGE (m:Graphmem {migration: $number})
ON CREATE SET m:Migration, m.name = $name, m.applied_at = datetime()
RETURN m.migration AS row
