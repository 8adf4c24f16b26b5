WITH DISTINCT r, s, t
ORDER BY
    CASE WHEN $newest THEN r.valid_from END DESC,
    CASE WHEN $newest THEN r.recorded_at END DESC,
    CASE WHEN $newest THEN r.graphmem_id END DESC,
    r.graphmem_id
LIMIT $limit
RETURN /* include edge_row */ AS row
