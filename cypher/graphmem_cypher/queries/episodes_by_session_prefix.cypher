// A page of the episodes of the sessions that begin with a text.
UNWIND $q.scopes AS scope
UNWIND $q.session_keys AS begin
MATCH (e:Graphmem)
USING INDEX SEEK e:Graphmem(scope, session_key, id)
WHERE e.scope = scope AND e.session_key STARTS WITH begin AND /* include episode_filters */
/* include episode_page */
