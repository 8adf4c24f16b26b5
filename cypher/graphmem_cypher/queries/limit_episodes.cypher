// Set when episodes ended, and when they expire.
WITH [text IN $q.times | datetime(text)] AS times
CALL (times) {
    UNWIND $q.ends AS row
    MATCH (e:Graphmem {id: row[0]}) USING INDEX SEEK e:Graphmem(id)
    SET e.ended_at = times[row[1]]
}
CALL (times) {
    UNWIND $q.expiries AS row
    MATCH (e:Graphmem {id: row[0]}) USING INDEX SEEK e:Graphmem(id)
    SET e.expires_at = times[row[1]]
}
RETURN true AS row
