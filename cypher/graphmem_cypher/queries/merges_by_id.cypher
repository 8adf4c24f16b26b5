// A page of the merges with the given ids.
UNWIND $q.ids AS id
MATCH (m:Graphmem {id: id}) USING INDEX SEEK m:Graphmem(id)
WHERE /* include merge_filters */
/* include merge_page */
