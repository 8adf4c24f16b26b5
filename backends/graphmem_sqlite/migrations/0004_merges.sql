-- The merge ledger. A merge outlives its entities, so it names them by id; its rows are JSON: they are read whole.
CREATE TABLE merges (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    scope INTEGER NOT NULL REFERENCES scopes (key),
    kept TEXT NOT NULL,
    merged TEXT NOT NULL,
    undone INTEGER NOT NULL CHECK (undone IN (0, 1)),
    body TEXT NOT NULL
);
CREATE INDEX merges_by_scope ON merges (scope, id);
CREATE INDEX merges_by_kept ON merges (kept);
CREATE INDEX merges_by_merged ON merges (merged);
