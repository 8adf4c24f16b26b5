// A page of the episodes of some sessions.
UNWIND $q.scopes AS scope
UNWIND $q.session_keys AS key
MATCH (e:Graphmem)
USING INDEX SEEK e:Graphmem(scope, session_key, id)
WHERE e.scope = scope AND e.session_key = key AND /* include episode_filters */
/* include episode_page */
