// Check whether this user may create an index; rolled back. No other writer waits for its label.
CREATE INDEX graphmem_tried IF NOT EXISTS FOR (n:Migration) ON (n.name)
