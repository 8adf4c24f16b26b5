// Store recall traces with relationships to seeds, to the ends at which facts were found, and to episodes.
UNWIND $q.rows AS row
CREATE (t:Graphmem:Recall)
SET t = row.values,
    t.asked_at = datetime(row.asked_at),
    t.valid = datetime(row.valid),
    t.known = datetime(row.known)
WITH t, row
CALL (t, row) {
    UNWIND row.seeds AS seed
    MATCH (e:Graphmem {id: seed[1]}) USING INDEX SEEK e:Graphmem(id)
    CREATE (t)-[:ACTIVATED {seed: true, position: seed[0], score: seed[2]}]->(e)
}
CALL (t, row) {
    UNWIND row.facts AS fact
    MATCH (e:Graphmem {id: fact[1]}) USING INDEX SEEK e:Graphmem(id)
    CREATE (t)-[:ACTIVATED {seed: false, position: fact[0], score: fact[2], fact_id: fact[3], fact: fact[4],
        hop: fact[5], channel: fact[6], rank: fact[7]}]->(e)
}
CALL (t, row) {
    UNWIND row.episodes AS episode
    MATCH (p:Graphmem {id: episode[1]}) USING INDEX SEEK p:Graphmem(id)
    CREATE (t)-[:FOUND {position: episode[0], score: episode[2], channel: episode[3], rank: episode[4]}]->(p)
}
RETURN count(t) AS row
