// A page of the episodes of a session.
UNWIND $scopes AS scope
MATCH (e:Graphmem {scope: scope, session_key: $session_key})
WHERE /* include episode_filters */
/* include episode_page */
