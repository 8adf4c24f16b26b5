// Scopes of the episodes that some owners hold.
UNWIND $q.owners AS owner
MATCH (e:Graphmem {claimed_by: owner})
RETURN DISTINCT e.scope AS row ORDER BY row
