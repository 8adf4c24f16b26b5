r.scope = scope AND r.graphmem_id > after AND r.valid_to IS NULL AND r.expired_at IS NULL
AND coalesce(r.kind, '') <> 'inferred' AND NOT EXISTS {
    MATCH (i:Graphmem {scope: scope, index_kind: 'fact', index_key: r.graphmem_id}) WHERE i.complete
}
