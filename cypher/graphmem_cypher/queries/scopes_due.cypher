// Scopes that have unprocessed episodes.
MATCH (l:Graphmem)
WHERE l.scope_key IS NOT NULL AND ($q.scopes IS NULL OR l.scope_key IN $q.scopes)
    AND EXISTS { MATCH (e:Graphmem) WHERE e.queue = l.scope_key AND e.id > '' }
RETURN l.scope_key AS row ORDER BY row
