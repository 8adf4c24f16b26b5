UNWIND $q.lock AS scope
MERGE (l:Graphmem {scope_key: scope.key})
ON CREATE SET l:Scope, l.domain = scope.domain, l.project = scope.project,
    // a scope that was cleared and is created again gets a generation that it never had
    l.index_generation = timestamp()
SET l.locked_at = timestamp()
