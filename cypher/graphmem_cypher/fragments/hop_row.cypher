[r.graphmem_id, startNode(r) = n, n.id, r.relation, type(r), r.fact, r.confidence, r.retrieval_count,
    toString(r.valid_from), o.id, o.name, o.entity_type, o.archived_at IS NULL, coalesce(r.kind, '') = 'inferred',
    type(r)]
