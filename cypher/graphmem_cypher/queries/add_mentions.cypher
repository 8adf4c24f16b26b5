// Link entities to episodes; the first mention of an entity in an episode stays.
UNWIND $q.rows AS row
MATCH (p:Graphmem {id: row.episode})
MATCH (e:Graphmem {id: row.entity})
MERGE (p)-[m:MENTIONS]->(e)
ON CREATE SET m.surface = row.surface, m.confidence = row.confidence, m.seen_at = datetime(row.seen_at)
RETURN count(m) AS row
