// A page of named recall traces.
UNWIND $q.ids AS id
MATCH (t:Graphmem {id: id})
WHERE t.strategy IS NOT NULL AND t.scope IN $q.scopes AND /* include recall_filters */
/* include recall_page */
