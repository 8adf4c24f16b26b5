// The states of upkeep jobs of a scope.
MATCH (m:Graphmem)
WHERE m.scope = $q.scope AND m.upkeep_job IS NOT NULL
RETURN [m.upkeep_job, toString(m.done_at), m.episodes, toString(m.begun_at), m.cursor] AS row ORDER BY m.upkeep_job
