// Set what filters read of the metadata of episodes.
UNWIND $q.rows AS row
MATCH (e:Graphmem {id: row[0]}) USING INDEX SEEK e:Graphmem(id)
SET e.metadata_entries = row[1]
RETURN count(e) AS row
