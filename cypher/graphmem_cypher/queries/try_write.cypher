// See whether this user may write; rolled back.
CREATE (n:Graphmem:Scope {turn: 0})
RETURN count(n) AS row
