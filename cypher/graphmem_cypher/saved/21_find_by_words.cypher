// 21 Find by words
// Entities with all these words in a name or the summary, and episodes with all of them in the text, the last ones first.
// Parts of words count. Reads every name, entity and episode of the scope. A table.
// :param scope => 'default'
// :param words => 'Globex'
CALL () {
    WITH split(toLower(normalize(trim($words), NFKC)), ' ') AS words
    MATCH (a:Graphmem) WHERE a.scope = $scope AND a.canonical_name IS NOT NULL AND a.entity_type IS NOT NULL
    MATCH (e:Graphmem {id: coalesce(a.entity_id, a.id)})
    WHERE all(word IN words WHERE a.canonical_name CONTAINS word OR toLower(e.summary) CONTAINS word)
    WITH DISTINCT e ORDER BY e.last_seen_at DESC, e.id LIMIT 100
    RETURN 'entity' AS what, e.entity_type AS kind, e.name AS text, e.last_seen_at AS at, e.id AS id
    UNION ALL
    WITH split(toLower(normalize(trim($words), NFKC)), ' ') AS words
    MATCH (p:Episode)
    USING INDEX SEEK p:Episode(scope, id)
    WHERE p.scope = $scope AND p.id > '' AND p:Graphmem
        AND all(word IN words WHERE toLower(p.text) CONTAINS word OR toLower(p.title) CONTAINS word)
    WITH p ORDER BY p.occurred_at DESC, p.id LIMIT 100
    RETURN 'episode' AS what, coalesce(p.speaker, p.source) AS kind, left(p.text, 300) AS text, p.occurred_at AS at,
        p.id AS id
}
RETURN what, kind, text, at, id ORDER BY what = 'episode', at DESC, id
