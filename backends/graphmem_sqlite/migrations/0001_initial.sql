-- Times are integers: microseconds since 1970-01-01T00:00:00Z. Properties are JSON objects, NULL where empty.
-- `key` columns are private to the file and keep indexes small; `id` columns are what the outside knows.

CREATE TABLE scopes (
    key INTEGER PRIMARY KEY,
    scope_key TEXT NOT NULL UNIQUE
);

CREATE TABLE entities (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    scope INTEGER NOT NULL REFERENCES scopes (key),
    name TEXT NOT NULL,
    canonical_name TEXT NOT NULL,
    entity_type TEXT NOT NULL,
    summary TEXT NOT NULL,
    properties TEXT,
    confidence REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    first_seen_at INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    access_count INTEGER NOT NULL,
    archived_at INTEGER,
    valid_from INTEGER,
    valid_to INTEGER,
    -- words of name and summary, each with the scope's key in front ("12_alice"): what full text indexes
    name_words TEXT NOT NULL,
    summary_words TEXT NOT NULL
);
CREATE UNIQUE INDEX entities_by_name ON entities (scope, canonical_name, entity_type);
CREATE INDEX entities_by_scope ON entities (scope, id);

CREATE TABLE aliases (
    scope INTEGER NOT NULL REFERENCES scopes (key),
    alias TEXT NOT NULL,
    entity_type TEXT NOT NULL,
    entity INTEGER NOT NULL REFERENCES entities (key) ON DELETE CASCADE,
    PRIMARY KEY (scope, alias, entity_type)
) WITHOUT ROWID;
CREATE INDEX aliases_by_entity ON aliases (entity);

CREATE TABLE episodes (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    scope INTEGER NOT NULL REFERENCES scopes (key),
    source TEXT NOT NULL CHECK (source IN ('message', 'document', 'triple')),
    text TEXT NOT NULL,
    session_id TEXT,
    role TEXT,
    speaker TEXT,
    title TEXT,
    occurred_at INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    metadata TEXT,
    external_id TEXT,
    processed_at INTEGER,
    attempts INTEGER NOT NULL,
    error TEXT,
    retry_at INTEGER,
    claimed_by TEXT,
    claimed_until INTEGER
);
CREATE UNIQUE INDEX episodes_by_external_id ON episodes (scope, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX episodes_by_scope ON episodes (scope, id);
CREATE INDEX episodes_by_session ON episodes (scope, session_id, id) WHERE session_id IS NOT NULL;
-- the queue: processed episodes cost it nothing
CREATE INDEX episodes_unprocessed ON episodes (id) WHERE processed_at IS NULL;
CREATE INDEX episodes_unprocessed_by_scope ON episodes (scope, id) WHERE processed_at IS NULL;
CREATE INDEX episodes_claimed ON episodes (claimed_by, claimed_until) WHERE claimed_by IS NOT NULL;

CREATE TABLE mentions (
    entity INTEGER NOT NULL REFERENCES entities (key) ON DELETE CASCADE,
    episode INTEGER NOT NULL REFERENCES episodes (key) ON DELETE CASCADE,
    surface TEXT NOT NULL,
    confidence REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (entity, episode)
) WITHOUT ROWID;
CREATE INDEX mentions_by_episode ON mentions (episode);

CREATE TABLE edges (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    scope INTEGER NOT NULL REFERENCES scopes (key),
    source INTEGER NOT NULL REFERENCES entities (key) ON DELETE CASCADE,
    target INTEGER NOT NULL REFERENCES entities (key) ON DELETE CASCADE,
    relation TEXT NOT NULL,
    edge_type TEXT NOT NULL CHECK (edge_type IN ('semantic', 'temporal', 'causal', 'entity', 'co_occurrence')),
    fact TEXT NOT NULL,
    confidence REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    valid_from INTEGER NOT NULL,
    valid_to INTEGER,
    recorded_at INTEGER NOT NULL,
    expired_at INTEGER,
    superseded_by TEXT,
    retrieval_count REAL NOT NULL,
    last_retrieved_at INTEGER,
    properties TEXT,
    CHECK (source <> target),
    CHECK (valid_to >= valid_from)
);
CREATE INDEX edges_by_scope ON edges (scope, id);
-- active facts are unique on their key (the scope is that of the source); the rest is filed alike, so that all
-- versions of a key or of a (source, relation) are found through the two
CREATE UNIQUE INDEX edges_active ON edges (source, relation, target, edge_type)
WHERE valid_to IS NULL AND expired_at IS NULL;
CREATE INDEX edges_inactive ON edges (source, relation, target, edge_type)
WHERE valid_to IS NOT NULL OR expired_at IS NOT NULL;
-- the best edges of a node, without reading the others: open ones in order, ended ones (few are visible) by their end
CREATE INDEX edges_open_by_source ON edges (source, confidence DESC, id, edge_type) WHERE valid_to IS NULL;
CREATE INDEX edges_open_by_target ON edges (target, confidence DESC, id, edge_type) WHERE valid_to IS NULL;
CREATE INDEX edges_ended_by_source ON edges (source, valid_to) WHERE valid_to IS NOT NULL;
CREATE INDEX edges_ended_by_target ON edges (target, valid_to) WHERE valid_to IS NOT NULL;
-- histories, newest first; what one write recorded with one valid_from is sorted by id when it is read
CREATE INDEX edges_history_by_source ON edges (source, valid_from DESC, recorded_at DESC);
CREATE INDEX edges_history_by_target ON edges (target, valid_from DESC, recorded_at DESC);
-- what began, was learned, ended, was learned to have ended in a window of time
CREATE INDEX edges_by_valid_from ON edges (scope, valid_from);
CREATE INDEX edges_by_recorded_at ON edges (scope, recorded_at);
CREATE INDEX edges_by_valid_to ON edges (scope, valid_to) WHERE valid_to IS NOT NULL;
CREATE INDEX edges_by_expired_at ON edges (scope, expired_at) WHERE expired_at IS NOT NULL;

CREATE TABLE edge_episodes (
    edge INTEGER NOT NULL REFERENCES edges (key) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    episode INTEGER NOT NULL REFERENCES episodes (key) ON DELETE CASCADE,
    PRIMARY KEY (edge, position)
) WITHOUT ROWID;
CREATE INDEX edge_episodes_by_episode ON edge_episodes (episode);

-- Full text over the entities that aren't archived. The words come ready-made (graphmem_sqlite.entities), so that
-- the tokenizer only has to split at spaces; '_' stands between scope and word.
CREATE VIEW searchable_entities AS
SELECT key, name_words, summary_words FROM entities WHERE archived_at IS NULL;

CREATE VIRTUAL TABLE entity_words USING fts5 (
    name_words,
    summary_words,
    content = 'searchable_entities',
    content_rowid = 'key',
    tokenize = "unicode61 remove_diacritics 0 tokenchars '_'"
);

CREATE TRIGGER entity_words_insert AFTER INSERT ON entities
WHEN new.archived_at IS NULL
BEGIN
    INSERT INTO entity_words (rowid, name_words, summary_words)
    VALUES (new.key, new.name_words, new.summary_words);
END;

CREATE TRIGGER entity_words_delete AFTER DELETE ON entities
WHEN old.archived_at IS NULL
BEGIN
    INSERT INTO entity_words (entity_words, rowid, name_words, summary_words)
    VALUES ('delete', old.key, old.name_words, old.summary_words);
END;

CREATE TRIGGER entity_words_update AFTER UPDATE OF name_words, summary_words, archived_at ON entities
WHEN old.name_words <> new.name_words
    OR old.summary_words <> new.summary_words
    OR (old.archived_at IS NULL) <> (new.archived_at IS NULL)
BEGIN
    INSERT INTO entity_words (entity_words, rowid, name_words, summary_words)
    SELECT 'delete', old.key, old.name_words, old.summary_words WHERE old.archived_at IS NULL;
    INSERT INTO entity_words (rowid, name_words, summary_words)
    SELECT new.key, new.name_words, new.summary_words WHERE new.archived_at IS NULL;
END;
