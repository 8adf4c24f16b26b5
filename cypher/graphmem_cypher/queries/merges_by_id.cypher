// A page of named merges.
UNWIND $q.ids AS id
MATCH (m:Graphmem {id: id})
WHERE /* include merge_filters */
/* include merge_page */
