t.id > $q.after
/* if facts */ AND EXISTS { (t)-[y:ACTIVATED]->(:Graphmem) WHERE y.fact_id IN $q.facts } /* end */
/* if episodes */ AND EXISTS { (t)-[:FOUND]->(z:Graphmem) WHERE z.id IN $q.episodes } /* end */
/* if entities */ AND EXISTS { (t)-[:ACTIVATED]->(x:Graphmem) WHERE x.id IN $q.entities } /* end */
