// Delete mentions of a scope.
UNWIND $q.rows AS row
MATCH (e:Graphmem {id: row[0]})<-[m:MENTIONS]-(p:Graphmem {id: row[1]}) USING INDEX SEEK e:Graphmem(id) USING INDEX SEEK p:Graphmem(id)
WHERE e.scope = $q.scope AND p.scope = $q.scope
DELETE m
RETURN count(*) AS row
