// A page of the episodes with the given external ids.
UNWIND $q.scopes AS scope
UNWIND $q.external_keys AS key
MATCH (e:Graphmem {scope: scope, external_key: key})
WHERE /* include episode_filters */
/* if before_session */ AND e.scope = $q.before_scope AND e.session_id = $q.before_session /* end */
/* include episode_page */
