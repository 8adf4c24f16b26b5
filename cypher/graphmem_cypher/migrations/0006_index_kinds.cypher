// Entities are compared by their vectors while episodes are read: their entries are few among those of episodes.

CREATE INDEX graphmem_index_kinds IF NOT EXISTS FOR (n:IndexEntry) ON (n.scope, n.index_kind, n.position);
