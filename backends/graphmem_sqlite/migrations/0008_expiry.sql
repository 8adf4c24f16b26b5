-- when an episode was replaced, and from when on it is hidden and to be erased; few episodes have either
ALTER TABLE episodes ADD COLUMN ended_at INTEGER;
ALTER TABLE episodes ADD COLUMN expires_at INTEGER;
CREATE INDEX episodes_ended ON episodes (scope, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX episodes_expiring ON episodes (scope, expires_at) WHERE expires_at IS NOT NULL;
