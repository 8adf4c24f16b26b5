-- the stated ends of a fact as a JSON list of [id of an episode or a fact, time], NULL for none; and what finds facts by
-- the episode or the fact that ended them
ALTER TABLE edges ADD COLUMN ends TEXT;
CREATE INDEX edges_by_successor ON edges (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX edges_with_ends ON edges (scope, id) WHERE ends IS NOT NULL;
