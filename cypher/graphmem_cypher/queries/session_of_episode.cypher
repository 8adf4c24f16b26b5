// The scope and session of an episode.
MATCH (e:Graphmem {id: $id})
WHERE e:Episode AND e.scope IN $scopes AND e.session_id IS NOT NULL
RETURN [e.scope, e.session_id, e.session_key] AS row
