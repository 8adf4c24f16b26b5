-- What recall keeps beside the rows (graphmem.models.IndexEntry). A position is never given twice: who has read to one
-- asks for what lies behind it.
CREATE TABLE index_entries (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    scope INTEGER NOT NULL REFERENCES scopes (key),
    kind TEXT NOT NULL CHECK (kind IN ('episode', 'fact', 'name', 'entity')),
    key TEXT NOT NULL,
    model TEXT NOT NULL,
    vectors BLOB NOT NULL,
    pieces BLOB NOT NULL,
    detail TEXT NOT NULL,
    complete INTEGER NOT NULL CHECK (complete IN (0, 1)),
    UNIQUE (scope, kind, key)
);
CREATE INDEX index_entries_by_scope ON index_entries (scope, position);

CREATE TABLE index_states (
    scope INTEGER PRIMARY KEY REFERENCES scopes (key),
    model TEXT,
    generation INTEGER NOT NULL
);

-- an entry goes with its row, and whoever keeps a copy of the index learns of it
CREATE TRIGGER episode_unindexed AFTER DELETE ON episodes BEGIN
    DELETE FROM index_entries WHERE scope = old.scope AND kind = 'episode' AND key = old.id;
    INSERT INTO index_states (scope, model, generation) VALUES (old.scope, NULL, 1)
    ON CONFLICT (scope) DO UPDATE SET generation = generation + 1;
END;
CREATE TRIGGER fact_unindexed AFTER DELETE ON edges BEGIN
    DELETE FROM index_entries WHERE scope = old.scope AND kind = 'fact' AND key = old.id;
    INSERT INTO index_states (scope, model, generation) VALUES (old.scope, NULL, 1)
    ON CONFLICT (scope) DO UPDATE SET generation = generation + 1;
END;
CREATE TRIGGER entity_unindexed AFTER DELETE ON entities BEGIN
    DELETE FROM index_entries WHERE scope = old.scope AND kind = 'entity' AND key = old.id;
    INSERT INTO index_states (scope, model, generation) VALUES (old.scope, NULL, 1)
    ON CONFLICT (scope) DO UPDATE SET generation = generation + 1;
END;
