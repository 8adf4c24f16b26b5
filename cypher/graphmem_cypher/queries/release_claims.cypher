// Release the claims of some owners; the released episodes, oldest id first.
UNWIND $q.owners AS owner
MATCH (e:Graphmem {claimed_by: owner})
WHERE e.scope IN $q.scopes
SET e.claimed_by = null, e.claimed_until = null
WITH e ORDER BY e.id
RETURN /* include episode_row */ AS row
