// Entities of which a phrase is an alias, the longest first.
UNWIND $q.scopes AS scope
UNWIND $q.phrases AS phrase
MATCH (a:Graphmem {scope: scope, alias: phrase})
WHERE a.entity_type IS NOT NULL
MATCH (e:Graphmem {id: a.entity_id})
WHERE e.archived_at IS NULL
RETURN [e.id, phrase] AS row ORDER BY size(phrase) DESC, e.id, phrase
