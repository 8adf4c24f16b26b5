// Index entries by their keys.
UNWIND $q.keys AS key
MATCH (i:Graphmem {scope: $q.scope, index_kind: $q.kind, index_key: key})
RETURN /* include index_row */ AS row ORDER BY i.index_key
