// Check whether this user may write; rolled back.
CREATE (n:Graphmem:Scope {locked_at: timestamp()})
RETURN count(n) AS row
