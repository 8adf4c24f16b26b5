-- The mark of the migration that the store takes part in: at most one row.
CREATE TABLE move (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL,
    state TEXT NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    started_at INTEGER NOT NULL
);
