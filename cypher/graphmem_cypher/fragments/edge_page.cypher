WITH DISTINCT r, s, t
ORDER BY /* if newest */ r.valid_from DESC, r.recorded_at DESC, r.graphmem_id DESC, /* end */ r.graphmem_id
LIMIT $q.limit
RETURN /* include edge_row */ AS row
