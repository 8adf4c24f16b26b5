// A page of the episodes of a session.
UNWIND $q.scopes AS scope
MATCH (e:Graphmem {scope: scope, session_key: $q.session_key})
WHERE /* include episode_filters */
/* include episode_page */
