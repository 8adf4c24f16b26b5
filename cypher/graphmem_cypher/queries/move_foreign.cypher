// Move what others put on an entity to the one that it is merged into; the node of the merge keeps what was on it.
MATCH (g:Graphmem {id: $q.merged}) USING INDEX SEEK g:Graphmem(id)
MATCH (k:Graphmem {id: $q.kept}) USING INDEX SEEK k:Graphmem(id)
MERGE (m:Graphmem {id: $q.merge})
SET m:Merge, m.scope = $q.scope, m.foreign_labels = $q.labels
WITH m, g, k
CALL (m, g, k) {
    UNWIND $q.properties AS name
    SET m['foreign.' + name] = g[name]
    // first: a constraint of theirs may allow a value only once
    REMOVE g[name]
    WITH m, k, name WHERE k[name] IS NULL
    SET k[name] = m['foreign.' + name]
}
REMOVE g:$($q.labels)
SET k:$($q.labels)
WITH g, k
CALL (g, k) {
    MATCH (g)-[r]-(o)
    WHERE /* include is_foreign */
    WITH DISTINCT g, k, r, startNode(r) AS begin, endNode(r) AS end, type(r) AS type, properties(r) AS values
    DELETE r
    WITH *, CASE begin WHEN g THEN k ELSE begin END AS newBegin, CASE end WHEN g THEN k ELSE end END AS newEnd,
        $q.merge + CASE WHEN begin = end THEN ' both' WHEN begin = g THEN ' start' ELSE ' end' END AS mark
    CREATE (newBegin)-[n:$(type)]->(newEnd)
    SET n = values, n.graphmem_merges = coalesce(values['graphmem_merges'], []) + [mark]
}
RETURN count(*) AS row
