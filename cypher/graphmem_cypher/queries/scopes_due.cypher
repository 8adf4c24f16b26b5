// Scopes that have unprocessed episodes.
MATCH (l:Graphmem)
WHERE l.scope_key IS NOT NULL AND ($scopes IS NULL OR l.scope_key IN $scopes)
    AND EXISTS { MATCH (e:Graphmem) WHERE e.queue = l.scope_key AND e.id > '' }
RETURN l.scope_key AS row ORDER BY row
