// A page of the recall traces with the given ids.
UNWIND $q.ids AS id
MATCH (t:Graphmem {id: id}) USING INDEX SEEK t:Graphmem(id)
WHERE t.strategy IS NOT NULL AND t.scope IN $q.scopes AND /* include recall_filters */
/* include recall_page */
