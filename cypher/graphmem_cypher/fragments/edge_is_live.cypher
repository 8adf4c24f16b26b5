r.graphmem_id > '' AND r.valid_to IS NULL AND r.expired_at IS NULL AND coalesce(r.kind, '') <> 'inferred'
AND s.archived_at IS NULL AND t.archived_at IS NULL
