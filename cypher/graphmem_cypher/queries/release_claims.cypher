// Give back what some owners hold.
UNWIND $owners AS owner
MATCH (e:Graphmem {claimed_by: owner})
WHERE e.scope IN $scopes
SET e.claimed_by = null, e.claimed_until = null
RETURN count(e) AS row
