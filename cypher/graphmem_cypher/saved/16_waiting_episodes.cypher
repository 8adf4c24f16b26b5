// 16 Episodes that wait or failed
// What is stored but not extracted, the oldest first: how often it was tried, why it failed, when it is due. A table.
// :param scope => 'default'
MATCH (p:Graphmem)
USING INDEX SEEK p:Graphmem(queue, id)
WHERE p.queue = $scope AND p.id > ''
RETURN CASE
        WHEN p.error IS NOT NULL AND p.retry_at IS NULL THEN 'failed'
        WHEN p.claimed_until > datetime() THEN 'being extracted'
        ELSE 'waiting'
    END AS state,
    p.attempts AS attempts, p.error AS error, p.retry_at AS due, p.occurred_at AS said, p.speaker AS speaker,
    left(p.text, 200) AS words, p.id AS id
ORDER BY p.queue, p.id LIMIT 200
