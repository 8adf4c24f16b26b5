// The index status of each scope: rows to index after an episode and a fact, entries after a position.
UNWIND $q.cursors AS cursor
WITH cursor[0] AS scope, cursor[1] AS episode, cursor[2] AS after, cursor[3] AS position
OPTIONAL MATCH (l:Graphmem {scope_key: scope})
CALL (scope, episode) {
    MATCH (e:Episode)
    WHERE e.scope = scope AND e.id > episode AND e:Graphmem AND NOT EXISTS {
        MATCH (i:Graphmem {scope: scope, index_kind: 'episode', index_key: e.id}) WHERE i.complete
    }
    WITH e LIMIT 1
    RETURN count(e) > 0 AS episodes
}
CALL (scope, after) {
    CALL (scope, after) {
        MATCH (:Graphmem)-[r:SEMANTIC]->(:Graphmem)
        USING INDEX r:SEMANTIC(scope, graphmem_id)
        WHERE /* include is_unindexed_fact */
        RETURN r LIMIT 1
        UNION ALL
        MATCH (:Graphmem)-[r:TEMPORAL]->(:Graphmem)
        USING INDEX r:TEMPORAL(scope, graphmem_id)
        WHERE /* include is_unindexed_fact */
        RETURN r LIMIT 1
        UNION ALL
        MATCH (:Graphmem)-[r:CAUSAL]->(:Graphmem)
        USING INDEX r:CAUSAL(scope, graphmem_id)
        WHERE /* include is_unindexed_fact */
        RETURN r LIMIT 1
        UNION ALL
        MATCH (:Graphmem)-[r:ENTITY]->(:Graphmem)
        USING INDEX r:ENTITY(scope, graphmem_id)
        WHERE /* include is_unindexed_fact */
        RETURN r LIMIT 1
        UNION ALL
        MATCH (:Graphmem)-[r:CO_OCCURRENCE]->(:Graphmem)
        USING INDEX r:CO_OCCURRENCE(scope, graphmem_id)
        WHERE /* include is_unindexed_fact */
        RETURN r LIMIT 1
    }
    WITH r LIMIT 1
    RETURN count(r) > 0 AS facts
}
CALL (scope, position) {
    MATCH (i:IndexEntry)
    WHERE i.scope = scope AND i.position > position AND i:Graphmem
    WITH i LIMIT 1
    RETURN count(i) > 0 AS entries
}
CALL (scope) {
    CALL (scope) {
        MATCH (e:Episode)
        USING INDEX e:Episode(scope, ended_at)
        WHERE e.scope = scope AND e.ended_at IS NOT NULL AND e:Graphmem
        RETURN e LIMIT 1
        UNION ALL
        MATCH (e:Episode)
        USING INDEX e:Episode(scope, expires_at)
        WHERE e.scope = scope AND e.expires_at IS NOT NULL AND e:Graphmem
        RETURN e LIMIT 1
    }
    RETURN count(e) > 0 AS limited
}
RETURN [scope, l.index_model, coalesce(l.index_generation, 0), episodes OR facts, entries, limited] AS row
