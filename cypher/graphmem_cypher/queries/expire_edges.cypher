// End facts; a time is a position in the list of times.
WITH [text IN $q.times | datetime(text)] AS times
UNWIND $q.rows AS row
WITH times, row, row[0] AS id
/* include find_edge */
SET r.valid_to = times[row[1]], r.expired_at = times[row[2]], r.superseded_by = row[3], r.end_reason = row[4],
    r.ended_by = row[5], r.end_times = [position IN row[6] | times[position]],
    r.graphmem_active = null
RETURN count(r) AS row
