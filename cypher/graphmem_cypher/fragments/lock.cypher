UNWIND $q.lock AS scope
MERGE (l:Graphmem {scope_key: scope.key})
ON CREATE SET l:Scope, l.domain = scope.domain, l.project = scope.project,
    // a scope that was cleared and is created again gets a generation that it never had
    l.index_generation = timestamp()
// in a migration, who creates a scope also locks the mark: `lock_all_scopes` doesn't see the new scope yet
FOREACH (created IN CASE WHEN l.locked_at IS NULL AND $q.adopted <> '' THEN [1] ELSE [] END |
    MERGE (m:Graphmem {move: 'mark'})
    SET m.locked_at = timestamp())
SET l.locked_at = timestamp()
