CALL () {
    MATCH (c:Graphmem)
    WHERE c.claimed_by IS NOT NULL AND c.claimed_until > $q.now AND NOT c.claimed_by STARTS WITH $q.own
    RETURN collect(DISTINCT c.scope) AS held
}
