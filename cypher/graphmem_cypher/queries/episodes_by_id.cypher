// A page of the episodes with the given ids.
UNWIND $q.ids AS id
MATCH (e:Graphmem {id: id}) USING INDEX SEEK e:Graphmem(id)
WHERE e:Episode AND e.scope IN $q.scopes
/* if before_session */ AND e.scope = $q.before_scope AND e.session_id = $q.before_session /* end */
AND /* include episode_filters */
/* include episode_page */
