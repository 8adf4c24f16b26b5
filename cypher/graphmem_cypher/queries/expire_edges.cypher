// End facts; a time is a position in the list of times.
WITH [text IN $q.times | datetime(text)] AS times
/* include find_edges */
WITH times, r, $q.rows[r.graphmem_id] AS row
SET r.valid_to = times[row[0]], r.expired_at = times[row[1]], r.superseded_by = row[2], r.end_reason = row[3],
    r.ended_by = row[4], r.end_times = [position IN row[5] | times[position]],
    r.ends_told_at = [position IN row[6] | times[position]],
    r.graphmem_active = null
RETURN count(r) AS row
