// A page of the episodes of some scopes that have expired by a time.
UNWIND $q.scopes AS scope
CALL (scope) {
    MATCH (e:Episode)
    USING INDEX e:Episode(scope, expires_at)
    WHERE e.scope = scope AND e.expires_at <= $q.expired_by AND e:Graphmem AND /* include episode_filters */
    RETURN e ORDER BY e.id /* if newest */ DESC /* end */ LIMIT $q.limit
}
/* include episode_page */
