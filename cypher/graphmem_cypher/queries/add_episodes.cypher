// Store new episodes and return the held external ids; if an id is taken, nothing is stored.
WITH [text IN $q.times | datetime(text)] AS times
CALL () {
    UNWIND range(0, size($q.rows) - 1) AS position
    WITH position, $q.rows[position] AS row
    OPTIONAL MATCH (held:Graphmem {scope: $q.scope, external_key: row[1]})
    OPTIONAL MATCH (taken:Graphmem {id: row[0]}) USING INDEX SEEK taken:Graphmem(id)
    RETURN collect([position, held.id, taken.id]) AS found
}
WITH times, [f IN found WHERE f[1] IS NULL | f[0]] AS fresh, [f IN found WHERE f[1] IS NOT NULL | f] AS held,
    [f IN found WHERE f[1] IS NULL AND f[2] IS NOT NULL | f] AS taken
CALL (times, fresh, taken) {
    UNWIND CASE WHEN size(taken) = 0 THEN fresh ELSE [] END AS position
    WITH times, $q.rows[position] AS row
    CREATE (e:Graphmem:Episode {
        id: row[0], external_key: row[1], external_id: row[2], scope: $q.scope, domain: $q.domain, project: $q.project,
        source: row[3], text: row[4], session_id: row[5], session_key: row[6], role: row[7], speaker: row[8],
        title: row[9], metadata: row[10], attempts: row[11], error: row[12], queue: row[13],
        occurred_at: times[row[14]], recorded_at: times[row[15]], processed_at: times[row[16]],
        retry_at: times[row[17]], metadata_entries: row[18], ended_at: times[row[19]],
        expires_at: times[row[20]]})
}
UNWIND held + taken AS row
RETURN row
