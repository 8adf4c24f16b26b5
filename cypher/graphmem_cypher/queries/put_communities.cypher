// Store communities, or replace them.
UNWIND $q.rows AS row
MERGE (c:Graphmem {id: row.id})
ON CREATE SET c:Community
SET c += row.values,
    c.created_at = datetime(row.created_at),
    c.updated_at = datetime(row.updated_at),
    c.ended_at = datetime(row.ended_at)
RETURN count(c) AS row
