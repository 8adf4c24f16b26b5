// A page of the recall traces that contain some facts.
UNWIND $q.facts AS fact
MATCH (t:Graphmem)-[r:ACTIVATED {fact_id: fact}]->(:Graphmem)
WHERE t.scope IN $q.scopes AND /* include recall_filters */
/* include recall_page */
