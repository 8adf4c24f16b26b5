// A page of the memberships of some entities.
UNWIND $q.entities AS id
MATCH (e:Graphmem {id: id}) USING INDEX SEEK e:Graphmem(id)
MATCH (e)-[m:IN_COMMUNITY]->(c:Graphmem)
WHERE c.scope IN $q.scopes AND ($q.communities IS NULL OR c.id IN $q.communities) AND /* include membership_filters */
/* include membership_page */
