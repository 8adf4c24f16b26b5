// Episodes without a complete index entry.
MATCH (e:Episode)
WHERE e.scope = $q.scope AND e.id > $q.after AND e:Graphmem AND NOT EXISTS {
    MATCH (i:Graphmem {scope: $q.scope, index_kind: 'episode', index_key: e.id}) WHERE i.complete
}
RETURN e.id AS row ORDER BY e.scope, e.id LIMIT $q.limit
