CREATE TABLE communities (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    scope INTEGER NOT NULL REFERENCES scopes (key),
    level INTEGER NOT NULL CHECK (level >= 0),
    name TEXT NOT NULL,
    summary TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    -- checked at the end of the transaction: one write may bring the parts before the whole
    parent INTEGER REFERENCES communities (key) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    ended_at INTEGER,
    CHECK (ended_at >= created_at)
);
CREATE INDEX communities_by_scope ON communities (scope, id);
CREATE INDEX communities_by_level ON communities (scope, level, id);
CREATE INDEX communities_by_parent ON communities (parent) WHERE parent IS NOT NULL;

-- who was in which community, during [since, until)
CREATE TABLE memberships (
    key INTEGER PRIMARY KEY,
    community INTEGER NOT NULL REFERENCES communities (key) ON DELETE CASCADE,
    entity INTEGER NOT NULL REFERENCES entities (key) ON DELETE CASCADE,
    since INTEGER NOT NULL,
    until INTEGER CHECK (until >= since),
    UNIQUE (community, entity, since)
);
CREATE INDEX memberships_by_entity ON memberships (entity, community);

CREATE TABLE recalls (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    scope INTEGER NOT NULL REFERENCES scopes (key),
    query TEXT NOT NULL,
    strategy TEXT NOT NULL,
    asked_at INTEGER NOT NULL,
    valid INTEGER,
    known INTEGER
);
CREATE INDEX recalls_by_scope ON recalls (scope, id);

CREATE TABLE recall_seeds (
    recall INTEGER NOT NULL REFERENCES recalls (key) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    entity INTEGER NOT NULL REFERENCES entities (key) ON DELETE CASCADE,
    score REAL NOT NULL,
    PRIMARY KEY (recall, position)
) WITHOUT ROWID;
CREATE INDEX recall_seeds_by_entity ON recall_seeds (entity);

-- `entity` is the end at which the fact was found; no rank: considered, but not returned
CREATE TABLE recall_facts (
    recall INTEGER NOT NULL REFERENCES recalls (key) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    edge INTEGER NOT NULL REFERENCES edges (key) ON DELETE CASCADE,
    entity INTEGER NOT NULL REFERENCES entities (key) ON DELETE CASCADE,
    score REAL NOT NULL,
    hop INTEGER NOT NULL,
    channel TEXT NOT NULL,
    rank INTEGER,
    PRIMARY KEY (recall, position)
) WITHOUT ROWID;
CREATE INDEX recall_facts_by_edge ON recall_facts (edge);
CREATE INDEX recall_facts_by_entity ON recall_facts (entity);

CREATE TABLE recall_episodes (
    recall INTEGER NOT NULL REFERENCES recalls (key) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    episode INTEGER NOT NULL REFERENCES episodes (key) ON DELETE CASCADE,
    score REAL NOT NULL,
    channel TEXT NOT NULL,
    rank INTEGER,
    PRIMARY KEY (recall, position)
) WITHOUT ROWID;
CREATE INDEX recall_episodes_by_episode ON recall_episodes (episode);
