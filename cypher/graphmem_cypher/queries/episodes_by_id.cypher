// A page of named episodes.
UNWIND $ids AS id
MATCH (e:Graphmem {id: id})
WHERE e:Episode AND e.scope IN $scopes AND ($before_session IS NULL
    OR (e.scope = $before_scope AND e.session_id = $before_session)) AND /* include episode_filters */
/* include episode_page */
