WITH DISTINCT t
ORDER BY t.id /* if newest */ DESC /* end */
LIMIT $q.limit
RETURN [t.id, t.scope, t.query, t.strategy, toString(t.asked_at), toString(t.valid), toString(t.known),
    [(t)-[a:ACTIVATED]->(e:Graphmem) | [a.seed, a.position, e.id, a.score, a.fact_id, a.hop, a.channel, a.rank]],
    [(t)-[f:FOUND]->(p:Graphmem) | [f.position, p.id, f.score, f.channel, f.rank]]] AS row
