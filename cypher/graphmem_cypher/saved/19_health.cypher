// 19 Health and counts
// How much a scope holds, and what shouldn't be there: the lines of "check" are 0 in a sound store. A table.
// :param scope => 'default'
CALL () {
    MATCH (e:Entity)
    USING INDEX SEEK e:Entity(scope, id)
    WHERE e.scope = $scope AND e.id > '' AND e:Graphmem
    WITH e.entity_type AS kind, count(*) AS all, count(e.archived_at) AS archived
    RETURN 'entities' AS what, kind, all, all - archived AS active
    UNION ALL
    MATCH (s:Entity)
    USING INDEX SEEK s:Entity(scope, id)
    WHERE s.scope = $scope AND s.id > '' AND s:Graphmem
    MATCH (s)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE WHERE r.graphmem_id IS NOT NULL]->(:Graphmem)
    WITH toLower(type(r)) AS kind, count(*) AS all,
        count(CASE WHEN r.valid_to IS NULL AND r.expired_at IS NULL THEN 1 END) AS active
    RETURN 'facts' AS what, kind, all, active
    UNION ALL
    MATCH (p:Episode)
    USING INDEX SEEK p:Episode(scope, id)
    WHERE p.scope = $scope AND p.id > '' AND p:Graphmem
    WITH p.source AS kind, count(*) AS all, count(p.processed_at) AS active
    RETURN 'episodes' AS what, kind, all, active
    UNION ALL
    MATCH (p:Graphmem)
    USING INDEX SEEK p:Graphmem(queue, id)
    WHERE p.queue = $scope AND p.id > '' AND p.error IS NOT NULL AND p.retry_at IS NULL
    WITH count(*) AS all
    RETURN 'check' AS what, 'episodes that failed' AS kind, all, null AS active
    UNION ALL
    MATCH (e:Entity)
    USING INDEX SEEK e:Entity(scope, id)
    WHERE e.scope = $scope AND e.id > '' AND e:Graphmem AND NOT (e)--()
    WITH count(*) AS all
    RETURN 'check' AS what, 'entities with neither facts nor mentions' AS kind, all, null AS active
    UNION ALL
    MATCH (s:Entity)
    USING INDEX SEEK s:Entity(scope, id)
    WHERE s.scope = $scope AND s.id > '' AND s:Graphmem
    MATCH (s)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE WHERE r.graphmem_id IS NOT NULL]->(t:Graphmem)
    WHERE t.scope <> s.scope OR r.scope <> s.scope
    WITH count(*) AS all
    RETURN 'check' AS what, 'facts across scopes' AS kind, all, null AS active
    UNION ALL
    MATCH (s:Entity)
    USING INDEX SEEK s:Entity(scope, id)
    WHERE s.scope = $scope AND s.id > '' AND s:Graphmem
    MATCH (s)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE WHERE r.graphmem_id IS NOT NULL]->(:Graphmem)
    WHERE r.valid_from IS NULL OR r.recorded_at IS NULL OR r.fact IS NULL OR r.confidence IS NULL OR r.episode_ids IS NULL
    WITH count(*) AS all
    RETURN 'check' AS what, 'facts written by hand without all properties' AS kind, all, null AS active
    UNION ALL
    MATCH (s:Entity)
    USING INDEX SEEK s:Entity(scope, id)
    WHERE s.scope = $scope AND s.id > '' AND s:Graphmem
    MATCH (s)-[r:SEMANTIC|TEMPORAL|CAUSAL|ENTITY|CO_OCCURRENCE WHERE r.graphmem_id IS NOT NULL]->(:Graphmem)
    WHERE NOT (r.valid_from IS :: ZONED DATETIME AND r.valid_to IS :: ZONED DATETIME AND r.recorded_at IS :: ZONED DATETIME
        AND r.expired_at IS :: ZONED DATETIME AND r.confidence IS :: INTEGER | FLOAT AND r.fact IS :: STRING
        AND r.relation IS :: STRING AND r.episode_ids IS :: LIST<STRING NOT NULL>)
    WITH count(*) AS all
    RETURN 'check' AS what, 'facts written by hand with values of another type' AS kind, all, null AS active
}
RETURN what, kind, all, active ORDER BY what <> 'check' DESC, what, all DESC, kind
