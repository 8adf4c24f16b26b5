// Lock scopes for the rest of the transaction; a scope that is new gets its node.
UNWIND $q.scopes AS scope
MERGE (l:Graphmem {scope_key: scope.key})
ON CREATE SET l:Scope, l.domain = scope.domain, l.project = scope.project, l.turn = 0
SET l.turn = l.turn + 1
RETURN count(l) AS row
