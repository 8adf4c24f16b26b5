// Insert memberships, or replace them.
UNWIND $q.rows AS row
MATCH (e:Graphmem {id: row.entity}) USING INDEX SEEK e:Graphmem(id)
MATCH (c:Graphmem {id: row.community}) USING INDEX SEEK c:Graphmem(id)
MERGE (e)-[m:IN_COMMUNITY {since: datetime(row.since)}]->(c)
SET m.until = datetime(row.until)
RETURN count(m) AS row
