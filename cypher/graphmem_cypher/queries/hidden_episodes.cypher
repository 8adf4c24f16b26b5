// A page of the episodes of some scopes that have expired or ended by a time.
UNWIND $q.scopes AS scope
CALL (scope) {
    CALL (scope) {
        MATCH (e:Episode)
        USING INDEX e:Episode(scope, expires_at)
        WHERE e.scope = scope AND e.expires_at <= $q.hidden_at
        RETURN e
        UNION
        MATCH (e:Episode)
        USING INDEX e:Episode(scope, ended_at)
        WHERE e.scope = scope AND e.ended_at <= $q.hidden_end
        RETURN e
    }
    WITH e WHERE e:Graphmem AND /* include episode_filters */
    RETURN e ORDER BY e.id /* if newest */ DESC /* end */ LIMIT $q.limit
}
/* include episode_page */
