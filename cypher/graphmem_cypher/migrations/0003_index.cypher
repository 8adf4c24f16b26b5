// What recall keeps beside the rows: nodes of ours with a key that is unique in a scope, read by position.

CREATE CONSTRAINT graphmem_index_key IF NOT EXISTS
FOR (n:Graphmem) REQUIRE (n.scope, n.index_kind, n.index_key) IS UNIQUE;
CREATE INDEX graphmem_index_position IF NOT EXISTS FOR (n:IndexEntry) ON (n.scope, n.position);
