// A page of the episodes with metadata of all scopes, in order of id, for the migration that sets metadata_entries.
MATCH (e:Graphmem)
WHERE e.id > $q.after AND e:Episode AND e.metadata IS NOT NULL
RETURN [e.id, e.metadata, e.metadata_entries] AS row
ORDER BY e.id
LIMIT $q.limit
