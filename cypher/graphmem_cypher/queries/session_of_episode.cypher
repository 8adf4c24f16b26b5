// The scope and session of an episode.
MATCH (e:Graphmem {id: $q.id}) USING INDEX SEEK e:Graphmem(id)
WHERE e:Episode AND e.scope IN $q.scopes AND e.session_id IS NOT NULL
RETURN [e.scope, e.session_id, e.session_key] AS row
