UNWIND $q.lock AS scope
MERGE (l:Graphmem {scope_key: scope.key})
ON CREATE SET l:Scope, l.domain = scope.domain, l.project = scope.project
SET l.locked_at = timestamp()
