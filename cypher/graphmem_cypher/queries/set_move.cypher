// Set the mark of a migration, or remove it: all values are null then.
MATCH (m:Graphmem {move: 'mark'})
SET m.mark = $q.mark, m.migration_id = $q.id, m.state = $q.state, m.source = $q.source, m.target = $q.target,
    m.started_at = datetime($q.started_at)
RETURN count(m) AS row
