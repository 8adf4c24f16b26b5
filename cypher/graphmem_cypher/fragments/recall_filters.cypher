t.id > $q.after AND ($q.ids IS NULL OR t.id IN $q.ids)
AND ($q.facts IS NULL OR EXISTS { (t)-[y:ACTIVATED]->(:Graphmem) WHERE y.fact_id IN $q.facts })
AND ($q.episodes IS NULL OR EXISTS { (t)-[:FOUND]->(z:Graphmem) WHERE z.id IN $q.episodes })
AND ($q.entities IS NULL OR EXISTS { (t)-[:ACTIVATED]->(x:Graphmem) WHERE x.id IN $q.entities })
