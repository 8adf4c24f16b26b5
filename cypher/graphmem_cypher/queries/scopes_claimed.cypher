// Scopes of the episodes claimed by some owners.
UNWIND $q.owners AS owner
MATCH (e:Graphmem {claimed_by: owner})
RETURN DISTINCT e.scope AS row ORDER BY row
