// A page of the communities with some entities as members.
UNWIND $q.entities AS id
MATCH (e:Graphmem {id: id}) USING INDEX SEEK e:Graphmem(id)
MATCH (e)-[m:IN_COMMUNITY]->(c:Graphmem)
WHERE c.scope IN $q.scopes AND ($q.ids IS NULL OR c.id IN $q.ids) AND /* include is_member */ AND /* include community_filters */
WITH DISTINCT c ORDER BY c.id LIMIT $q.limit
RETURN /* include community_row */ AS row
