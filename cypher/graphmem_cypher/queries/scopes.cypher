// Scopes that hold anything.
MATCH (l:Graphmem)
WHERE l.scope_key IS NOT NULL AND (
    EXISTS { MATCH (e:Entity) WHERE e.scope = l.scope_key AND e.id > '' AND e:Graphmem }
    OR EXISTS { MATCH (e:Episode) WHERE e.scope = l.scope_key AND e.id > '' AND e:Graphmem })
RETURN l.scope_key AS row
