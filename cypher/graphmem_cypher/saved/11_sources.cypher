// 11 Sources: who and what the facts come from
// Episodes by kind and speaker, how many entities they mention and how many wait for extraction. A table.
// :param scope => 'default'
MATCH (p:Episode)
USING INDEX SEEK p:Episode(scope, id)
WHERE p.scope = $scope AND p.id > '' AND p:Graphmem
WITH p.source AS source, p.speaker AS speaker, count(*) AS episodes, min(p.occurred_at) AS first,
    max(p.occurred_at) AS last, sum(COUNT { (p)-[:MENTIONS]->() }) AS mentions, count(p.queue) AS waiting
RETURN source, speaker, episodes, mentions, waiting, date(first) AS first, date(last) AS last
ORDER BY episodes DESC, source, speaker
