// A page of the communities with the given ids.
UNWIND $q.ids AS id
MATCH (c:Graphmem {id: id}) USING INDEX SEEK c:Graphmem(id)
WHERE c.level IS NOT NULL AND c.scope IN $q.scopes AND /* include community_filters */
WITH c ORDER BY c.id LIMIT $q.limit
RETURN /* include community_row */ AS row
