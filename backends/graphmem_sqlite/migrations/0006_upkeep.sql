-- how far upkeep has come; times as everywhere, NULL where there is none
CREATE TABLE upkeep_marks (
    scope INTEGER NOT NULL REFERENCES scopes (key),
    job TEXT NOT NULL,
    done_at INTEGER,
    episodes INTEGER NOT NULL,
    begun_at INTEGER,
    cursor TEXT NOT NULL,
    PRIMARY KEY (scope, job)
) WITHOUT ROWID;
-- the facts whose counts fade: few among all
CREATE INDEX edges_retrieved ON edges (scope, id) WHERE retrieval_count > 0;

-- A generation must not come twice, even where a scope was cleared and came back: the state of a scope begins at the
-- sequence of positions, which never goes back and which clearing lifts above the generation that went.
DROP TRIGGER episode_unindexed;
DROP TRIGGER fact_unindexed;
DROP TRIGGER entity_unindexed;
CREATE TRIGGER episode_unindexed AFTER DELETE ON episodes BEGIN
    DELETE FROM index_entries WHERE scope = old.scope AND kind = 'episode' AND key = old.id;
    INSERT INTO index_states (scope, model, generation)
    VALUES (old.scope, NULL, 1 + coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'index_entries'), 0))
    ON CONFLICT (scope) DO UPDATE SET generation = generation + 1;
END;
CREATE TRIGGER fact_unindexed AFTER DELETE ON edges BEGIN
    DELETE FROM index_entries WHERE scope = old.scope AND kind = 'fact' AND key = old.id;
    INSERT INTO index_states (scope, model, generation)
    VALUES (old.scope, NULL, 1 + coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'index_entries'), 0))
    ON CONFLICT (scope) DO UPDATE SET generation = generation + 1;
END;
CREATE TRIGGER entity_unindexed AFTER DELETE ON entities BEGIN
    DELETE FROM index_entries WHERE scope = old.scope AND kind = 'entity' AND key = old.id;
    INSERT INTO index_states (scope, model, generation)
    VALUES (old.scope, NULL, 1 + coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'index_entries'), 0))
    ON CONFLICT (scope) DO UPDATE SET generation = generation + 1;
END;
