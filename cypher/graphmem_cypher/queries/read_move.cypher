// The mark of a migration.
MATCH (m:Graphmem {move: 'mark'}) WHERE m.mark IS NOT NULL
RETURN [m.migration_id, m.state, m.source, m.target, toString(m.started_at)] AS row
