// The owners with unexpired claims.
MATCH (e:Graphmem)
WHERE e.claimed_by IS NOT NULL AND e.claimed_until > $q.now
RETURN DISTINCT e.claimed_by AS row ORDER BY row
