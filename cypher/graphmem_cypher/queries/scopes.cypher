// The scopes that hold anything.
MATCH (l:Graphmem)
WHERE l.scope_key IS NOT NULL AND (
    EXISTS { MATCH (e:Entity) WHERE e.scope = l.scope_key AND e.id > '' AND e:Graphmem }
    OR EXISTS { MATCH (e:Episode) WHERE e.scope = l.scope_key AND e.id > '' AND e:Graphmem }
    OR EXISTS { MATCH (c:Community) WHERE c.scope = l.scope_key AND c.id > '' AND c:Graphmem }
    OR EXISTS { MATCH (t:Recall) WHERE t.scope = l.scope_key AND t.id > '' AND t:Graphmem }
    OR EXISTS { MATCH (m:Merge) WHERE m.scope = l.scope_key AND m.id > '' AND m:Graphmem })
RETURN l.scope_key AS row
