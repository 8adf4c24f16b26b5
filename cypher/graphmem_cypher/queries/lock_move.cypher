// Lock the mark of a migration for the rest of the transaction; its node is created.
MERGE (m:Graphmem {move: 'mark'})
ON CREATE SET m:GraphmemMove
SET m.locked_at = timestamp()
RETURN count(m) AS row
