// A page of the episodes with the given ids.
UNWIND $q.ids AS id
MATCH (e:Graphmem {id: id}) USING INDEX SEEK e:Graphmem(id)
WHERE e:Episode AND e.scope IN $q.scopes AND ($q.before_session IS NULL
    OR (e.scope = $q.before_scope AND e.session_id = $q.before_session)) AND /* include episode_filters */
/* include episode_page */
