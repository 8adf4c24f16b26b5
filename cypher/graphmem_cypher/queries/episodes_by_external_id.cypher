// A page of the episodes with the given external ids.
UNWIND $q.scopes AS scope
UNWIND $q.external_keys AS key
MATCH (e:Graphmem {scope: scope, external_key: key})
WHERE ($q.before_session IS NULL
    OR (e.scope = $q.before_scope AND e.session_id = $q.before_session)) AND /* include episode_filters */
/* include episode_page */
