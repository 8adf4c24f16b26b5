// See whether this user may make an index; rolled back. Its label is one that no other writer waits for.
CREATE INDEX graphmem_tried IF NOT EXISTS FOR (n:Migration) ON (n.name)
