// End facts.
UNWIND $q.rows AS row
/* include find_edge */
SET r.valid_to = datetime(row.valid_to), r.expired_at = datetime(row.expired_at),
    r.superseded_by = row.superseded_by, r.graphmem_active = null
RETURN count(r) AS row
