// A page of the memberships in some communities.
UNWIND $q.communities AS id
MATCH (c:Graphmem {id: id}) USING INDEX SEEK c:Graphmem(id)
MATCH (e:Graphmem)-[m:IN_COMMUNITY]->(c)
WHERE c.scope IN $q.scopes AND /* include membership_filters */
/* include membership_page */
