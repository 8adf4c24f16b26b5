WITH count(l) AS locked
// by a range: a seek of a unique value in a query that writes locks the value, and writers would wait for each other
OPTIONAL MATCH (m:Graphmem) WHERE m.move STARTS WITH 'mark'
WITH locked, coalesce(m.mark, '') AS mark
// fails unless the mark is the one under which this process writes: the server ends the transaction
WHERE 1 / CASE WHEN mark = $q.adopted THEN 1 ELSE 0 END = 1
