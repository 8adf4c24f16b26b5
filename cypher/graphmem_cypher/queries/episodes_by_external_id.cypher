// A page of the episodes with some external ids.
UNWIND $scopes AS scope
UNWIND $external_keys AS key
MATCH (e:Graphmem {scope: scope, external_key: key})
WHERE ($before_session IS NULL
    OR (e.scope = $before_scope AND e.session_id = $before_session)) AND /* include episode_filters */
/* include episode_page */
