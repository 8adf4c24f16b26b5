// Give back what others had put on an entity that was merged: `move_foreign` noted it.
// Names of properties that the schema doesn't have stand in brackets: the server warns of an unknown name.
MATCH (m:Graphmem {id: $q.merge}) USING INDEX SEEK m:Graphmem(id)
MATCH (g:Graphmem {id: $q.merged}) USING INDEX SEEK g:Graphmem(id)
MATCH (k:Graphmem {id: $q.kept}) USING INDEX SEEK k:Graphmem(id)
CALL (m, k) {
    UNWIND $q.properties AS name
    // one that was changed since stays
    WITH m, k, name WHERE k[name] = m['foreign.' + name]
    REMOVE k[name]
}
CALL (m, g) {
    UNWIND [key IN keys(m) WHERE key STARTS WITH 'foreign.'] AS key
    SET g[substring(key, size('foreign.'))] = m[key]
    REMOVE m[key]
}
REMOVE k:$(CASE WHEN m['foreign_labels'] IS NULL THEN [] ELSE $q.labels END)
SET g:$(coalesce(m['foreign_labels'], []))
WITH m, g, k
CALL (m, g, k) {
    MATCH (k)-[r]-()
    WHERE any(mark IN r['graphmem_merges'] WHERE mark STARTS WITH $q.merge)
    WITH DISTINCT m, g, k, r, startNode(r) AS begin, endNode(r) AS end, type(r) AS type, properties(r) AS values,
        [mark IN r['graphmem_merges'] WHERE mark STARTS WITH $q.merge | substring(mark, size($q.merge) + 1)][0] AS side
    DELETE r
    WITH *, CASE WHEN side IN ['start', 'both'] THEN g ELSE begin END AS newBegin,
        CASE WHEN side IN ['end', 'both'] THEN g ELSE end END AS newEnd,
        [mark IN values['graphmem_merges'] WHERE NOT mark STARTS WITH $q.merge] AS marks
    CREATE (newBegin)-[n:$(type)]->(newEnd)
    SET n = values, n.graphmem_merges = CASE marks WHEN [] THEN null ELSE marks END
}
SET m.foreign_labels = null
RETURN count(*) AS row
