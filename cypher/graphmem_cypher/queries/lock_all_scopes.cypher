// Lock all scopes for the rest of the transaction, which waits for the writers of each.
MATCH (l:Graphmem) WHERE l.scope_key > ''
WITH l ORDER BY l.scope_key
SET l.locked_at = timestamp()
RETURN count(l) AS row
