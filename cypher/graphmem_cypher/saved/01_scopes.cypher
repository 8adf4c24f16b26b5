// 01 Scopes in this database
// Whose data is here, and how much of it. The first column is what the parameter scope takes. A table.
MATCH (s:Graphmem) WHERE s.scope_key IS NOT NULL
RETURN s.scope_key AS scope,
    COUNT { MATCH (e:Entity) WHERE e.scope = s.scope_key AND e.id > '' AND e:Graphmem } AS entities,
    COUNT { MATCH (p:Episode) WHERE p.scope = s.scope_key AND p.id > '' AND p:Graphmem } AS episodes
ORDER BY entities + episodes DESC, scope
