WITH count(l) AS locked
OPTIONAL MATCH (m:Graphmem {move: 'mark'})
WITH locked, coalesce(m.mark, '') AS mark
// fails unless the mark is the one under which this process writes: the server ends the transaction
WHERE 1 / CASE WHEN mark = $q.adopted THEN 1 ELSE 0 END = 1
