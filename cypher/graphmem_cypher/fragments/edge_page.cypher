WITH DISTINCT r, s, t
ORDER BY
    CASE WHEN $q.newest THEN r.valid_from END DESC,
    CASE WHEN $q.newest THEN r.recorded_at END DESC,
    CASE WHEN $q.newest THEN r.graphmem_id END DESC,
    r.graphmem_id
LIMIT $q.limit
RETURN /* include edge_row */ AS row
