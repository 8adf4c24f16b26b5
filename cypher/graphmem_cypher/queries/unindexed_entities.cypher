// Unarchived entities without a complete index entry.
MATCH (e:Entity)
WHERE e.scope = $q.scope AND e.id > $q.after AND e:Graphmem AND e.archived_at IS NULL AND NOT EXISTS {
    MATCH (i:Graphmem {scope: $q.scope, index_kind: 'entity', index_key: e.id}) WHERE i.complete
}
RETURN e.id AS row ORDER BY e.scope, e.id LIMIT $q.limit
