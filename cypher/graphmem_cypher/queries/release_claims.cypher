// Release the claims of some owners.
UNWIND $q.owners AS owner
MATCH (e:Graphmem {claimed_by: owner})
WHERE e.scope IN $q.scopes
SET e.claimed_by = null, e.claimed_until = null
RETURN count(e) AS row
